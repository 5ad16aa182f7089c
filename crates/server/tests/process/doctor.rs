//! `animal-store doctor`: output and exit codes. The findings about a dependency are tested with its adapter.

use animal_store_test_servers::{PostgresServer, RedisServer};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Exited, LONG_TIMEOUT, Program};

const SECRET: &str = "top-secret";

/// A program with both dependencies.
fn program(postgres: &str, redis: &str) -> Program {
    Program::with_redis_url(redis)
        .env("ANIMAL_STORE_STORAGE__BACKEND", "postgres")
        .env("ANIMAL_STORE_STORAGE__POSTGRES__URL", postgres)
        // A loaded machine takes time to respond.
        .env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", LONG_TIMEOUT)
}

/// Returns the verdict about a subject in the text.
#[track_caller]
fn verdict<'a>(exited: &'a Exited, subject: &str) -> &'a str {
    let mut lines = exited.stdout.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.find(|words| words.get(1) == Some(&subject)).unwrap_or_else(|| panic!("no {subject}: {exited:#?}"))[0]
}

#[test]
fn a_healthy_setup_is_a_success() {
    let postgres = PostgresServer::with(&["fsync=on"]);
    let redis = RedisServer::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let program = || program(&postgres.url("postgres"), &redis.url());
    assert_eq!(program().args(&["migrate"]).run().code, Some(0));
    assert_eq!(program().args(&["keys", "create", "--label", "x"]).run().code, Some(0));

    let exited = program().args(&["doctor"]).run();
    exited.assert_success();
    assert!(exited.stdout.iter().all(|line| line.starts_with("ok ")), "{exited:#?}");

    let exited = program().args(&["doctor", "--json"]).run();
    exited.assert_success();
    let document: Value = serde_json::from_str(&exited.stdout.join("\n")).expect("a JSON document");
    assert_eq!(document["verdict"], "ok");
    let findings = document["findings"].as_array().expect("an array");
    assert!(
        findings.iter().all(|finding| finding["subject"].is_string() && finding["found"].is_string()),
        "{document}"
    );
    let subjects: Vec<_> = findings.iter().filter_map(|finding| finding["subject"].as_str()).collect();
    assert!(["postgres.durability", "redis.eviction"].iter().all(|name| subjects.contains(name)), "{document}");
    let documentation = include_str!("../../../../docs/operations/run.md");
    for subject in subjects {
        assert!(documentation.contains(&format!("`{subject}`")), "{subject}");
    }
}

#[test]
fn a_dependency_that_is_unavailable_does_not_hide_the_other_one() {
    let exited = program("postgres://127.0.0.1:1/store", &RedisServer::start().url()).args(&["doctor"]).run();
    assert_eq!((exited.code, verdict(&exited, "postgres.connection")), (Some(1), "error"), "{exited:#?}");
    assert_eq!((verdict(&exited, "redis.connection"), verdict(&exited, "redis.persistence")), ("ok", "error"));
    assert_eq!(exited.stderr, ["animal-store: errors found: 2"]);

    let exited = program(&PostgresServer::start().url("postgres"), "redis://127.0.0.1:1").args(&["doctor"]).run();
    assert_eq!((exited.code, verdict(&exited, "redis.connection")), (Some(1), "error"), "{exited:#?}");
    assert_eq!((verdict(&exited, "postgres.connection"), verdict(&exited, "postgres.durability")), ("ok", "error"));
}

#[test]
fn a_file_is_examined_beside_a_running_server() {
    let folder = TempDir::new().unwrap();
    let doctor = || Program::in_folder(folder.path()).args(&["doctor"]).run();
    let exited = doctor();
    assert_eq!((exited.code, verdict(&exited, "sqlite.file")), (Some(1), "error"), "{exited:#?}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "doctor changes nothing");

    let mut running = Program::in_folder(folder.path()).start();
    running.address();
    let exited = doctor();
    let documentation = include_str!("../../../../docs/operations/run.md");
    for subject in ["file", "pages", "permissions", "disk"] {
        let subject = format!("sqlite.{subject}");
        assert!(documentation.contains(&format!("`{subject}`")), "{subject}");
        // The disk of the tests can be full.
        assert!(verdict(&exited, &subject) == "ok" || subject == "sqlite.disk", "{exited:#?}");
    }
    exited.assert_success();
}

#[test]
fn backends_in_memory_are_warnings() {
    let exited = Program::new().args(&["doctor"]).run();
    exited.assert_success();
    for subject in ["storage.backend", "keys.backend"] {
        assert_eq!(verdict(&exited, subject), "warning", "{exited:#?}");
    }
}

#[test]
fn an_invalid_configuration_is_not_examined() {
    Program::new().args(&["doctor", "--set", "keys.backend=disk"]).run().assert_refused(2, &["keys.backend"]);
}

#[test]
fn no_password_is_printed() {
    let postgres = PostgresServer::with_password(SECRET);
    let redis = RedisServer::with(&["--requirepass", SECRET]);
    let urls = |password: &str| {
        let postgres = postgres.url("postgres").replace("postgres@", &format!("postgres:{password}@"));
        (postgres, redis.url().replace("redis://", &format!("redis://:{password}@")))
    };
    for (password, expected) in [(SECRET, "ok"), ("top-secret-and-wrong", "error")] {
        let (postgres, redis) = urls(password);
        for args in [&["doctor"][..], &["doctor", "--json"]] {
            let exited = program(&postgres, &redis).env("ANIMAL_STORE_LOG__FILTER", "trace").args(args).run();
            assert_eq!(exited.code, Some(1), "{exited:#?}");
            if args.len() == 1 {
                for subject in ["postgres.connection", "redis.connection"] {
                    assert_eq!(verdict(&exited, subject), expected, "{exited:#?}");
                }
            }
            assert!(!exited.output().contains(SECRET), "{exited:#?}");
        }
    }
}
