//! `animal-store doctor`: output and exit codes. The findings about a dependency are tested with its adapter.

use crate::prelude::*;

const DOCUMENTATION: &str = include_str!("../../../../docs/operations/run.md");

/// A program with both dependencies.
fn program(postgres: &str, redis: &str) -> Program {
    Program::with_redis(redis)
        .set("storage.backend", "postgres")
        .set("storage.postgres.url", postgres)
        .set("storage.postgres.timeout", LONG_TIMEOUT)
}

/// Asserts the verdict about a subject in the text, and that the subject is documented.
#[track_caller]
fn assert_verdict(exited: &Exited, subject: &str, expected: &str) {
    let mut lines = exited.stdout.iter();
    let is_found = lines.any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some(expected) && words.next() == Some(subject)
    });
    assert!(is_found, "{expected} {subject}: {exited:#?}");
    assert!(DOCUMENTATION.contains(&format!("`{subject}`")), "{subject}");
}

#[test]
fn a_healthy_setup_is_a_success_and_no_password_is_printed() {
    let postgres = PostgresServer::with(&["fsync=on"]);
    let options = "--appendonly yes --appendfsync always --requirepass top-secret";
    let redis = RedisServer::with(options);
    let run = |password: &str, line: &str| {
        let postgres = postgres.url();
        let postgres = postgres.replace("postgres@", &format!("postgres:{password}@"));
        let redis = redis.url();
        let redis = redis.replace("redis://", &format!("redis://:{password}@"));
        program(&postgres, &redis).args(line).run()
    };
    for line in ["migrate", "keys create --label x"] {
        run("top-secret", line).assert_code(0);
    }
    let text = run("top-secret", "doctor");
    let lines = &text.assert_success().stdout;
    assert!(lines.iter().all(|line| line.starts_with("ok ")), "{text:?}");

    let json = run("top-secret", "doctor --json");
    let document = json.assert_success().stdout.concat();
    let document: Value = serde_json::from_str(&document).expect("a JSON document");
    assert_eq!(document["verdict"], "ok");
    let findings = document["findings"].as_array().expect("an array");
    assert_eq!(findings.len(), lines.len(), "{document}");
    for finding in findings {
        assert!(finding["found"].is_string(), "{finding}");
        let subject = finding["subject"].as_str().expect("a text");
        assert_verdict(&text, subject, "ok");
    }

    let line = "--set log.filter=trace doctor";
    let wrong = run("top-secret-and-wrong", line);
    assert_verdict(&wrong, "redis.connection", "error");
    let last = wrong.assert_code(1).stderr.last().expect("a line");
    assert_eq!(last, "animal-store: errors found: 1");
    for exited in [text, json, wrong] {
        exited.assert_lacks("top-secret");
    }
}

/// The tests of each endpoint have the addresses that are exposed.
#[test]
fn a_store_on_another_machine_without_checked_tls_is_a_finding_and_a_warning_of_the_start() {
    let postgres = "postgres://store:top-secret@postgres.invalid/store?sslmode=require";
    let redis = "redis://:top-secret@redis.invalid";
    let exposed = program(postgres, "redis://127.0.0.1:1")
        .set("keys.redis.admin_url", redis)
        .args("doctor")
        .run();
    for subject in ["postgres.encryption", "redis.encryption"] {
        assert_verdict(&exposed, subject, "warning");
    }
    let mut running = Program::with_redis(redis).start();
    running.wait_for_warning("does not require TLS");
    for exited in [exposed, running.terminate()] {
        exited.assert_lacks("top-secret");
    }
}

#[test]
fn a_dependency_that_is_unavailable_does_not_hide_the_other_one() {
    let postgres = PostgresServer::start();
    let redis = RedisServer::start();
    for (postgres, redis, down, up, unsafe_setting) in [
        (
            "postgres://127.0.0.1:1/store",
            &*redis.url(),
            "postgres.connection",
            "redis.connection",
            "redis.persistence",
        ),
        (
            &postgres.url(),
            "redis://127.0.0.1:1",
            "redis.connection",
            "postgres.connection",
            "postgres.durability",
        ),
    ] {
        let exited = program(postgres, redis).args("doctor").run();
        assert_verdict(&exited, down, "error");
        assert_verdict(&exited, up, "ok");
        assert_verdict(exited.assert_code(1), unsafe_setting, "error");
    }
}

#[test]
fn a_file_is_examined_beside_a_running_server() {
    let store = Store::sqlite();
    let doctor = || store.unconfigured().args("doctor").run();
    let exited = doctor();
    assert_verdict(exited.assert_code(1), "sqlite.file", "error");

    let mut running = store.unconfigured().start();
    running.address();
    let exited = doctor();
    // The disk of the tests can be full.
    exited.assert_success().assert_has("sqlite.disk");
    assert!(DOCUMENTATION.contains("`sqlite.disk`"));
    for subject in ["sqlite.file", "sqlite.pages", "sqlite.permissions"] {
        assert_verdict(&exited, subject, "ok");
    }
}

#[test]
fn backends_in_memory_are_warnings() {
    let exited = Program::new().args("doctor").run();
    for subject in ["storage.backend", "keys.backend"] {
        assert_verdict(exited.assert_success(), subject, "warning");
    }
}

#[test]
fn a_long_rsa_key_a_certificate_that_ends_soon_and_an_expired_authority_of_clients_are_warnings() {
    for (algorithm, days, verdict, is_long) in [
        ("rsa:2048", "15", "ok", false),
        ("rsa:3072", "13", "warning", true),
    ] {
        let program = Program::new();
        let folder = program.directory();
        Certificates::make_until(folder, UNIX_EPOCH);
        let request = "req -x509 -nodes -subj /CN=localhost -keyout key.pem -out cert.pem -newkey";
        let mut openssl = Command::new("openssl");
        let openssl = openssl.current_dir(folder).args(request.split(' '));
        let made = openssl
            .args([algorithm, "-days", days])
            .output()
            .expect("OpenSSL is installed");
        assert!(made.status.success(), "{made:?}");
        let exited = program
            .set("http.tls.cert_file", "cert.pem")
            .set("http.tls.key_file", "key.pem")
            .set("http.tls.client_ca_file", "authority.pem")
            .args("doctor")
            .run();
        assert_verdict(exited.assert_success(), "http.tls.client_ca", "warning");
        assert_verdict(&exited, "http.tls", verdict);
        if is_long {
            assert_verdict(&exited, "http.tls.key", "warning");
        } else {
            exited.assert_lacks("http.tls.key ");
        }
    }
}
