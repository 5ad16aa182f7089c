//! The program on a schema that a newer program has changed: `docs/operations/upgrading.md` has the rules.

use std::net::SocketAddr;

use animal_store_test_servers::PgDatabase;

use crate::{
    pets::{create_request, is_replay, keyed_create_request, list_all},
    program::TOKEN,
    store::Store,
};

/// One of each change that an expansion may make, with its record.
const EXPANSION: &str = "
    ALTER TABLE pets ADD COLUMN born text;
    ALTER TABLE idempotency_keys ADD COLUMN source text DEFAULT 'api';
    CREATE INDEX pets_born ON pets (born);
    CREATE TABLE owners (id integer PRIMARY KEY);
    INSERT INTO __diesel_schema_migrations (version) VALUES ('9998expand')";

/// Sends one create without an idempotency key, and one with this key.
#[track_caller]
fn create_two(address: SocketAddr, key: &str) {
    create_request(address, TOKEN, "Rex")
        .send()
        .assert_status(201);
    assert!(!is_replay(
        keyed_create_request(address, TOKEN, key, "Bella")
            .send()
            .assert_status(201)
    ));
}

#[track_caller]
fn assert_replayed(address: SocketAddr, key: &str) {
    let response = keyed_create_request(address, TOKEN, key, "Bella").send();
    assert!(
        is_replay(response.assert_status(201)),
        "{key}: {response:?}"
    );
}

#[test]
fn only_migrate_runs_pending_migrations_and_prints_those_that_it_ran_or_would_run() {
    let (sqlite, postgres) = (Store::sqlite(), Store::Postgres(PgDatabase::new()));
    assert_eq!(sqlite.run(&["migrate"]).code, Some(1), "there is no file");
    // An empty file.
    sqlite.execute("");
    for args in [
        &["pets", "export"][..],
        &["keys", "create", "--label", "x"],
        &["keys", "list"],
        &["backup", "x"],
    ] {
        let exited = sqlite.with_own_keys().args(args).run();
        exited.assert_error(
            1,
            &["migrations are pending: 0001expand, 0002expand, 0003expand; run animal-store migrate"],
        );
    }
    for store in [sqlite, postgres] {
        let (all, dry_run) = (
            &["0001expand", "0002expand", "0003expand"][..],
            &["migrate", "--dry-run"][..],
        );
        for (args, expected) in [
            (dry_run, all),
            (&["migrate"], all),
            (&["migrate"], &[]),
            (dry_run, &[]),
        ] {
            let exited = store.run(args);
            assert!(
                exited.code == Some(0) && exited.stdout == expected,
                "{exited:?}"
            );
            assert_eq!(
                exited.output().contains("no migration is pending"),
                expected.is_empty(),
                "{exited:?}"
            );
        }
    }
}

#[test]
fn the_program_works_before_during_and_after_an_expansion_by_a_newer_program() {
    for store in Store::each() {
        let mut running = store.program().start();
        create_two(running.address(), "before");
        // The newer program starts beside this one, and runs its migration.
        store.execute(EXPANSION);
        create_two(running.address(), "during");
        assert_replayed(running.address(), "before");
        assert_eq!(list_all(running.address(), TOKEN).len(), 4);
        assert_eq!(running.terminate().code, Some(0));

        // The operator goes back to this program.
        assert_eq!(store.succeed(&["pets", "export"]).len(), 4);
        assert_eq!(store.succeed(&["migrate"]), Vec::<String>::new());
        let doctor = store.run(&["doctor"]).stdout;
        let finding = doctor
            .iter()
            .find(|line| line.contains("postgres.migrations") || line.contains("sqlite.file"));
        assert!(
            !finding.expect("a finding").starts_with("error"),
            "{doctor:?}"
        );
        let mut running = store.program().start();
        create_two(running.address(), "after");
        for key in ["before", "during", "after"] {
            assert_replayed(running.address(), key);
        }
        assert_eq!(list_all(running.address(), TOKEN).len(), 6);
        let mut events = running.terminate().events();
        events.retain(|event| event["message"] == "a newer program has expanded the schema");
        let [event] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(
            (&event["level"], &event["migrations"]),
            (&"WARN".into(), &"9998expand".into())
        );
    }
}
