//! The program with PostgreSQL: start, migrations, permissions, and loss of the database.

use crate::prelude::*;

fn create(address: SocketAddr) -> Response {
    create_request(address, "Rex").send()
}

/// Runs the pending migrations.
#[track_caller]
fn migrate(url: &str) {
    Program::with_postgres(url).args("migrate").succeed();
}

#[test]
fn a_failed_migrate_names_the_reason() {
    let memory = Program::new().args("migrate").run();
    memory.assert_error(2, &["storage.backend is memory, which has no schema"]);
    let url = "postgres://store:top-secret@127.0.0.1:1/store";
    let unavailable = Program::with_postgres(url).args("migrate").run();
    unavailable.assert_code(1).assert_has("refused");
    unavailable.assert_lacks("top-secret");
}

#[test]
fn migrate_sets_a_sequence_that_is_behind_and_a_start_warns_of_it() {
    let database = PgDatabase::new();
    migrate(database.url());
    database.sql("INSERT INTO pets (id, name, category_id) VALUES (7, 'Rex', 1)");
    let mut running = Program::with_postgres(database.url()).start();
    running.wait_for_warning("the sequence of ids is behind");
    migrate(database.url());
    assert_eq!(database.sql("SELECT nextval('pets_id_seq')"), "8");
}

/// With API keys in Redis, nothing else shows that pets are missing.
#[test]
fn a_table_of_pets_that_was_replaced_is_noticed_by_the_next_check_of_readiness() {
    let database = PgDatabase::new();
    let mut running = Program::with_postgres(database.url()).start();
    running.wait_until_ready();
    database.sql(
        "BEGIN; CREATE TABLE restored (LIKE pets INCLUDING ALL); DROP TABLE pets;
        ALTER TABLE restored RENAME TO pets; ALTER SEQUENCE restored_id_seq RENAME TO pets_id_seq; COMMIT",
    );
    running.wait_until_ready();
    running.wait_for_warning("the table of pets was replaced");
}

#[test]
fn an_unavailable_postgresql_is_a_503_until_it_is_available() {
    let mut server = PostgresServer::start();
    server.stop();
    let mut running = Program::with_postgres(&server.url()).start();
    let address = running.address();
    let management = running.management();
    let list = running.client().get("/v1/pets");
    for response in [list, create(address), management.get("/ready")] {
        response.assert_status(503);
    }
    management.get("/live").assert_status(200);
    let line = running.wait_for_log(|event| event["path"] == "/ready");
    assert_members(&line, &json!({"level": "ERROR", "status": 503}));
    let cause = line["cause"].as_str().expect("a cause");
    assert!(cause.starts_with("storage: "), "{line}");

    server.start_again();
    running.wait_until_ready();
    wait_until(|| status(address, TOKEN) == 200);
    wait_until(|| create(address).status == 201);
    server.stop();
    running.wait_for_warning("a connection to PostgreSQL was lost");
}

#[test]
fn the_log_says_whether_a_start_waits_for_the_schema_or_goes_on_without_it() {
    let locked = "canceling statement due to lock timeout";
    for (refusal, level, message) in [
        (locked, "WARN", "the start waits for the schema"),
        ("no", "ERROR", "the schema cannot be used: requests get 503"),
    ] {
        let database = PgDatabase::new();
        database.sql(&format!(
            "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''{refusal}''; END';
            CREATE EVENT TRIGGER refuse ON ddl_command_start EXECUTE FUNCTION refuse()"
        ));
        let mut running = Program::with_postgres(database.url()).start();
        assert_eq!(running.wait_for_event(message)["level"], level);
    }
}

/// The permissions that `docs/operations/postgresql.md` names.
#[test]
fn the_documented_permissions_are_enough() {
    let database = PgDatabase::new();
    let user = database.user();
    migrate(database.url());
    let documentation = include_str!("../../../../docs/operations/postgresql.md");
    let lines = documentation.lines().map(str::trim_start);
    let is_grant = |line: &&str| line.starts_with("GRANT ") && line.ends_with(" TO store;");
    // The first block is that of the instances. The later ones are for commands.
    let lines = lines.skip_while(|line| !is_grant(line));
    let grants: Vec<_> = lines.take_while(is_grant).collect();
    assert_eq!(grants.len(), 5);
    let to_user = format!("TO {};", user.name);
    database.sql(&grants.join("\n").replace("TO store;", &to_user));

    let program = Program::with_postgres(&user.url);
    let retention = program.set("storage.idempotency_retention", "1s");
    let mut running = retention.start();
    let address = running.address();
    create(address).assert_status(201);
    for _ in 0..2 {
        let created = keyed_create_request(address, "1", "Rex").send();
        created.assert_status(201);
    }
    assert_eq!(status(address, TOKEN), 200);
    wait_until(|| database.sql("SELECT count(*) FROM idempotency_keys") == "0");
    running.wait_until_ready();
}
