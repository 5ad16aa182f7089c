//! `animal-store doctor`: output and exit codes. The findings about a dependency are tested with its adapter.

use std::{process::Command, time::UNIX_EPOCH};

use animal_store_test_servers::{Certificates, PostgresServer, RedisServer};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Exited, LONG_TIMEOUT, Program};

const DOCUMENTATION: &str = include_str!("../../../../docs/operations/run.md");

/// Runs `doctor` with both dependencies.
fn doctor(postgres: &str, redis: &str, args: &[&str]) -> Exited {
    let program = Program::with_redis_url(redis).env("ANIMAL_STORE_STORAGE__BACKEND", "postgres");
    let program = program.env("ANIMAL_STORE_STORAGE__POSTGRES__URL", postgres);
    program
        .env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", LONG_TIMEOUT)
        .args(args)
        .run()
}

/// Returns the verdict about a subject in the text.
#[track_caller]
fn verdict<'a>(exited: &'a Exited, subject: &str) -> &'a str {
    let mut lines = exited
        .stdout
        .iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines
        .find(|words| words.get(1) == Some(&subject))
        .unwrap_or_else(|| panic!("no {subject}: {exited:#?}"))[0]
}

#[test]
fn a_healthy_setup_is_a_success_and_no_password_is_printed() {
    let postgres = PostgresServer::with(&["fsync=on"]);
    let options = [
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--requirepass",
        "top-secret",
    ];
    let redis = RedisServer::with(&options);
    let run = |password: &str, args: &[&str]| {
        let postgres = postgres
            .url("postgres")
            .replace("postgres@", &format!("postgres:{password}@"));
        doctor(
            &postgres,
            &redis
                .url()
                .replace("redis://", &format!("redis://:{password}@")),
            args,
        )
    };
    for args in [&["migrate"][..], &["keys", "create", "--label", "x"]] {
        assert_eq!(run("top-secret", args).code, Some(0));
    }
    let text = run("top-secret", &["doctor"]);
    assert!(
        text.assert_success()
            .stdout
            .iter()
            .all(|line| line.starts_with("ok ")),
        "{text:#?}"
    );

    let json = run("top-secret", &["doctor", "--json"]);
    let document: Value =
        serde_json::from_str(&json.assert_success().stdout.join("\n")).expect("a JSON document");
    assert_eq!(document["verdict"], "ok");
    let findings = document["findings"].as_array().expect("an array");
    assert!(
        !findings.is_empty() && findings.iter().all(|finding| finding["found"].is_string()),
        "{document}"
    );
    for finding in findings {
        let subject = finding["subject"].as_str().expect("a text");
        assert!(DOCUMENTATION.contains(&format!("`{subject}`")), "{subject}");
        assert_eq!(verdict(&text, subject), "ok");
    }

    let wrong = run(
        "top-secret-and-wrong",
        &["--set", "log.filter=trace", "doctor"],
    );
    assert_eq!(
        (wrong.code, verdict(&wrong, "redis.connection")),
        (Some(1), "error"),
        "{wrong:#?}"
    );
    assert_eq!(
        wrong.stderr.last().map(String::as_str),
        Some("animal-store: errors found: 1")
    );
    assert!(
        [text, json, wrong]
            .iter()
            .all(|exited| !exited.output().contains("top-secret"))
    );
}

#[test]
fn a_store_on_another_machine_without_checked_tls_is_a_finding_and_a_warning_of_the_start() {
    let exposed = doctor(
        "postgres://store:top-secret@postgres.invalid/store?sslmode=require",
        "redis://:top-secret@redis.invalid",
        &["doctor"],
    );
    for subject in ["postgres.encryption", "redis.encryption"] {
        assert_eq!(verdict(&exposed, subject), "warning", "{exposed:#?}");
        assert!(DOCUMENTATION.contains(&format!("`{subject}`")), "{subject}");
    }
    let checked = doctor(
        "postgres://store:top-secret@postgres.invalid/store?sslmode=verify-full",
        "rediss://:top-secret@redis.invalid",
        &["doctor"],
    );
    assert!(!checked.output().contains("encryption"), "{checked:#?}");
    let mut running = Program::with_redis_url("redis://:top-secret@redis.invalid").start();
    running.wait_for_log(|event| {
        let message = event["message"].as_str().unwrap_or_default();
        event["level"] == "WARN" && message.contains("does not require TLS")
    });
    let ended = running.terminate();
    for exited in [exposed, checked, ended] {
        assert!(!exited.output().contains("top-secret"), "{exited:#?}");
    }
}

#[test]
fn a_dependency_that_is_unavailable_does_not_hide_the_other_one() {
    let postgres = PostgresServer::start();
    let redis = RedisServer::start();
    let without_postgres = doctor("postgres://127.0.0.1:1/store", &redis.url(), &["doctor"]);
    let without_redis = doctor(
        &postgres.url("postgres"),
        "redis://127.0.0.1:1",
        &["doctor"],
    );
    for (exited, unavailable, available, insecure) in [
        (without_postgres, "postgres", "redis", "redis.persistence"),
        (without_redis, "redis", "postgres", "postgres.durability"),
    ] {
        assert_eq!(exited.code, Some(1), "{exited:#?}");
        for (subject, expected) in [
            (&*format!("{unavailable}.connection"), "error"),
            (&format!("{available}.connection"), "ok"),
            (insecure, "error"),
        ] {
            assert_eq!(verdict(&exited, subject), expected, "{exited:#?}");
        }
    }
}

#[test]
fn a_file_is_examined_beside_a_running_server() {
    let folder = TempDir::new().unwrap();
    let doctor = || Program::in_folder(folder.path()).args(&["doctor"]).run();
    let exited = doctor();
    assert_eq!(
        (exited.code, verdict(&exited, "sqlite.file")),
        (Some(1), "error"),
        "{exited:#?}"
    );

    let mut running = Program::in_folder(folder.path()).start();
    running.address();
    let exited = doctor();
    for subject in ["file", "pages", "permissions", "disk"] {
        let subject = format!("sqlite.{subject}");
        assert!(DOCUMENTATION.contains(&format!("`{subject}`")), "{subject}");
        // The disk of the tests can be full.
        assert!(
            verdict(&exited, &subject) == "ok" || subject == "sqlite.disk",
            "{exited:#?}"
        );
    }
    exited.assert_success();
}

#[test]
fn backends_in_memory_are_warnings_and_an_invalid_configuration_is_not_examined() {
    let exited = Program::new().args(&["doctor"]).run();
    for subject in ["storage.backend", "keys.backend"] {
        assert_eq!(
            verdict(exited.assert_success(), subject),
            "warning",
            "{exited:#?}"
        );
    }
    Program::new()
        .args(&["doctor", "--set", "keys.backend=disk"])
        .run()
        .assert_refused(2, &["keys.backend"]);
}

#[test]
fn a_long_rsa_key_and_an_expired_authority_of_clients_are_warnings() {
    let folder = TempDir::new().unwrap();
    let expired = TempDir::new().unwrap();
    let authority = Certificates::make_until(expired.path(), UNIX_EPOCH).authority;
    let make = |algorithm: &str| {
        let names = [
            "-subj",
            "/CN=localhost",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ];
        let made = Command::new("openssl")
            .current_dir(folder.path())
            .args(["req", "-x509", "-nodes", "-newkey", algorithm])
            .args(names)
            .output()
            .expect("OpenSSL is installed");
        assert!(made.status.success(), "{made:?}");
    };
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (algorithm, is_long) in [("rsa:2048", false), ("rsa:3072", true), ("ed25519", false)] {
        make(algorithm);
        let exited = Program::new()
            .env("ANIMAL_STORE_HTTP__TLS__CERT_FILE", &path("cert.pem"))
            .env("ANIMAL_STORE_HTTP__TLS__KEY_FILE", &path("key.pem"))
            .env(
                "ANIMAL_STORE_HTTP__TLS__CLIENT_CA_FILE",
                &authority.display().to_string(),
            )
            .args(&["doctor"])
            .run();
        assert_eq!(
            verdict(exited.assert_success(), "http.tls.client_ca"),
            "warning"
        );
        let is_warned = exited.output().contains("http.tls.key");
        assert_eq!(is_warned, is_long, "{algorithm} {exited:#?}");
    }
    for subject in ["http.tls.key", "http.tls.client_ca"] {
        assert!(DOCUMENTATION.contains(&format!("`{subject}`")), "{subject}");
    }
}
