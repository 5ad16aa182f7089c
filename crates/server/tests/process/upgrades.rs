//! The program on a schema that a newer program has changed: `docs/operations/upgrading.md` has the rules.

use diesel::{RunQueryDsl, sql_query};

use crate::{
    copy_store::{MEMORY, copy},
    prelude::*,
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
    create_request(address, "Rex").send().assert_status(201);
    assert_replayed(address, key, false);
}

#[track_caller]
fn assert_replayed(address: SocketAddr, key: &str, expected: bool) {
    let response = keyed_create_request(address, key, "Bella").send();
    response.assert_status(201);
    assert_eq!(is_replay(&response), expected, "{key}: {response:?}");
}

#[test]
fn only_migrate_runs_pending_migrations_and_prints_those_that_it_ran_or_would_run() {
    let sqlite = Store::sqlite();
    sqlite.run("migrate").assert_refused(1, &["does not exist"]);
    // An empty file.
    sqlite.execute("");
    let pending = ["0001expand", "0002expand", "0003expand"];
    for store in [sqlite, Store::Postgres(PgDatabase::new())] {
        for line in ["pets export", "keys list", "keys revoke shop"] {
            let refused = store.with_own_keys().args(line).run();
            refused.assert_refused(1, &["0001expand", "animal-store migrate"]);
        }
        for line in ["migrate --dry-run", "migrate"] {
            let exited = store.run(line);
            exited
                .assert_code(0)
                .assert_lacks("no migration is pending");
            assert_eq!(exited.stdout, pending, "{line}");
        }
        for line in ["migrate", "migrate --dry-run"] {
            let exited = store.run(line);
            exited.assert_code(0).assert_has("no migration is pending");
            assert!(exited.stdout.is_empty(), "{line}: {exited:?}");
        }
    }
}

#[test]
fn the_program_works_before_during_and_after_an_expansion_by_a_newer_program() {
    for store in Store::each() {
        let mut running = store.program().start();
        let address = running.address();
        create_two(address, "before");
        // The newer program starts beside this one, and runs its migration.
        store.execute(EXPANSION);
        create_two(address, "during");
        assert_replayed(address, "before", true);
        assert_eq!(list_all(address).len(), 4);
        running.terminate().assert_code(0);

        // The operator goes back to this program.
        assert_eq!(store.succeed("pets export").len(), 4);
        assert!(store.succeed("migrate").is_empty());
        let examined = store.run("doctor").stdout;
        let is_about =
            |line: &&String| line.contains("postgres.migrations") || line.contains("sqlite.file");
        let finding = examined.iter().find(is_about).expect("a finding");
        assert!(!finding.starts_with("error"), "{finding}");
        let mut running = store.program().start();
        let address = running.address();
        create_two(address, "after");
        for key in ["before", "during", "after"] {
            assert_replayed(address, key, true);
        }
        assert_eq!(list_all(address).len(), 6);
        let exited = running.terminate();
        let events = exited.events_of("a newer program has expanded the schema");
        let expected = json!({"level": "WARN", "migrations": "9998expand"});
        assert_members(only(&events), &expected);
    }
}

#[test]
fn a_store_that_a_newer_program_has_expanded_is_copied_by_sqlite_alone() {
    for store in Store::each() {
        store.import(&odd_pets(1));
        store.execute(EXPANSION);
        store.execute("UPDATE pets SET born = '2026-01-01'");
        let reason = "(9998expand), and this one would leave out what was added";
        let copy = copy((&store, MEMORY), (&Store::sqlite(), MEMORY)).run();
        copy.assert_refused(1, &[reason]);
        let backup = Store::sqlite();
        let made = store
            .with_own_keys()
            .args("backup")
            .arg(backup.path())
            .run();
        if let Store::Postgres(_) = store {
            made.assert_refused(1, &[reason]);
            assert!(!Path::new(&backup.path()).exists());
            continue;
        }
        made.assert_code(0);
        let clear = sql_query("UPDATE pets SET born = NULL WHERE born = '2026-01-01'");
        assert_eq!(clear.execute(&mut backup.connection()), Ok(1));
    }
}

/// The file has a pet of each status and an API key, and `Bella` was created with the idempotency key `before`.
#[test]
fn the_file_of_a_release_is_read_with_its_pets_its_keys_and_its_retries() {
    let store = Store::sqlite();
    store.execute(include_str!("upgrades/released-0.1.0.sql"));
    let mut running = store.with_own_keys().start();
    let token = "animalstore_0I1EjIDClsiviW445dqRpKN8dtk7rnzaynyIar1JdgD33l7Iq";
    let client = HttpClient::new(running.address()).with_token(token);
    let retry = client
        .request("POST", "/v1/pets")
        .json(r#"{"name":"Bella","categoryId":1}"#)
        .header("Idempotency-Key", "before")
        .send();
    assert!(is_replay(retry.assert_status(201)), "{retry:?}");
    let expected = json!([
        {"id": 1, "name": "Bella", "categoryId": 1},
        {"id": 2, "name": "Rex é", "categoryId": i64::MIN, "status": "available"},
        {"id": 3, "name": "Luna", "categoryId": i64::MAX, "status": "pending"},
        {"id": 4, "name": "Tom", "categoryId": 2, "status": "sold"},
    ]);
    assert_eq!(client.get("/v1/pets").json(), expected);
    let keys = store.keys("list").stdout;
    assert!(only(&keys[1..]).contains("web shop"), "{keys:?}");
}
