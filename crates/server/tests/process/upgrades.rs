//! The program on a schema that a newer program has changed: `docs/operations/upgrading.md` has the rules.

use std::net::SocketAddr;

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

const ONE_PET: &str = "{\"name\":\"Rex\",\"categoryId\":1}\n";

const CONTRACTION: &str = "INSERT INTO __diesel_schema_migrations (version) VALUES ('9999contract')";

/// Sends one create without an idempotency key, and one with this key.
#[track_caller]
fn create_two(address: SocketAddr, key: &str) {
    create_request(address, TOKEN, "Rex").send().assert_status(201);
    assert!(!is_replay(keyed_create_request(address, TOKEN, key, "Bella").send().assert_status(201)));
}

#[track_caller]
fn assert_replayed(address: SocketAddr, key: &str) {
    let response = keyed_create_request(address, TOKEN, key, "Bella").send();
    assert!(is_replay(response.assert_status(201)), "{key}: {response:?}");
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
        let mut running = store.program().start();
        create_two(running.address(), "after");
        for key in ["before", "during", "after"] {
            assert_replayed(running.address(), key);
        }
        assert_eq!(list_all(running.address(), TOKEN).len(), 6);
        let exited = running.terminate();
        assert_eq!(exited.code, Some(0), "{exited:?}");
        let events = exited.events();
        let newer: Vec<_> =
            events.iter().filter(|event| event["message"] == "a newer program has expanded the schema").collect();
        assert_eq!(newer.len(), 1, "{events:?}");
        assert_eq!((&newer[0]["level"], &newer[0]["migrations"]), (&"WARN".into(), &"9998expand".into()));
    }
}

#[test]
fn commands_accept_an_expansion_by_a_newer_program() {
    for store in Store::each() {
        store.import(ONE_PET);
        store.execute(EXPANSION);

        assert!(store.succeed(&["pets", "export"]).contains("Rex"));
        let doctor = store.run(&["doctor"]).stdout;
        let finding = doctor.iter().find(|line| line.contains("postgres.migrations") || line.contains("sqlite.file"));
        assert!(!finding.expect("a finding").starts_with("error"), "{doctor:?}");
        for args in [&["migrate"][..], &["migrate", "--dry-run"]] {
            let exited = store.run(args);
            assert_eq!((exited.code, &exited.stdout), (Some(0), &vec![]), "{exited:?}");
        }
    }
}

#[test]
fn after_a_contraction_by_a_newer_program_starts_and_commands_are_refused() {
    for store in Store::each() {
        store.import(ONE_PET);
        store.execute(CONTRACTION);

        for args in [&[][..], &["migrate"], &["pets", "import", "-", "--name", "x"]] {
            let reason = "a newer program has made changes that this one cannot work with: 9999contract";
            store.run(args).assert_error(1, &[reason, "; use its release, or restore a backup"]);
        }
        let doctor = store.run(&["doctor"]);
        let finding = doctor.stdout.iter().find(|line| line.contains("9999contract")).expect("a finding");
        assert!(doctor.code == Some(1) && finding.starts_with("error "), "{doctor:?}");
    }
}
