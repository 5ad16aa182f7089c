//! The program with PostgreSQL: start, migrations, permissions, and loss of the database.

use std::net::SocketAddr;

use animal_store_test_servers::{HttpClient, PgDatabase, PostgresServer, Response, wait_until};

use crate::{
    pets::{create_request, keyed_create_request},
    program::{Program, TOKEN},
};

fn list(address: SocketAddr) -> Response {
    HttpClient::new(address).with_token(TOKEN).get("/v1/pets")
}

fn create(address: SocketAddr) -> Response {
    create_request(address, TOKEN, "Rex").send()
}

/// Holds every insert of a pet in PostgreSQL until it is opened.
pub(crate) struct Gate<'a>(&'a PgDatabase);

impl<'a> Gate<'a> {
    pub(crate) fn closed(database: &'a PgDatabase) -> Self {
        database.sql(
            "CREATE TABLE gate (); INSERT INTO gate DEFAULT VALUES;
            CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN WHILE EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END';
            CREATE TRIGGER gate BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION wait_at_gate()",
        );
        Self(database)
    }

    /// Waits until an insert is held.
    #[track_caller]
    pub(crate) fn wait_for_insert(&self) {
        let held = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database()";
        wait_until(|| self.0.sql(&format!("{held} AND wait_event = 'PgSleep'")) == "t");
    }

    pub(crate) fn open(&self) {
        self.0.sql("DELETE FROM gate");
    }
}

#[test]
fn a_failed_migrate_names_the_reason() {
    let memory = Program::new().args(&["migrate"]).run();
    memory.assert_error(
        1,
        &["animal-store: storage.backend is memory, which has no schema"],
    );

    let unavailable = Program::with_postgres("postgres://store:top-secret@127.0.0.1:1/store")
        .args(&["migrate"])
        .run();
    assert_eq!(unavailable.code, Some(1));
    let output = unavailable.output();
    assert!(
        output.contains("refused") && !output.contains("top-secret"),
        "{unavailable:?}"
    );
}

#[test]
fn with_migrate_check_pending_migrations_prevent_the_start() {
    let database = PgDatabase::new();
    let check = || {
        Program::with_postgres(database.url())
            .env("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE", "check")
    };

    let exited = check().run();
    assert_eq!(exited.code, Some(1));
    assert!(!exited.output().contains("requests get 503"), "{exited:?}");
    let stderr = exited.stderr.join("\n");
    assert!(
        stderr.contains("0001expand") && stderr.contains("animal-store migrate"),
        "{stderr}"
    );

    assert_eq!(
        Program::with_postgres(database.url())
            .args(&["migrate"])
            .run()
            .code,
        Some(0)
    );
    assert_eq!(list(check().start().address()).status, 200);
}

#[test]
fn migrate_sets_a_sequence_that_is_behind_and_a_start_warns_of_it() {
    let database = PgDatabase::new();
    let migrate = || {
        let migrated = Program::with_postgres(database.url())
            .args(&["migrate"])
            .run();
        assert_eq!(migrated.code, Some(0), "{migrated:?}");
    };
    migrate();
    database.sql("INSERT INTO pets (id, name, category_id) VALUES (7, 'Rex', 1)");
    let mut running = Program::with_postgres(database.url()).start();
    running.wait_for_log(|event| {
        event["message"]
            .as_str()
            .is_some_and(|message| message.starts_with("the sequence of ids is behind"))
    });
    migrate();
    assert_eq!(database.sql("SELECT nextval('pets_id_seq')"), "8");
}

#[test]
fn an_unavailable_postgresql_is_a_503_until_it_is_available() {
    let mut server = PostgresServer::start();
    server.stop();
    let mut running = Program::with_postgres(&server.url("postgres")).start();
    let (address, management) = (running.address(), running.management_address());

    for response in [
        list(address),
        create(address),
        HttpClient::new(management).get("/ready"),
    ] {
        assert_eq!(response.status, 503, "{response:?}");
    }
    assert_eq!(HttpClient::new(management).get("/live").status, 200);
    let line = running.wait_for_log(|event| event["path"] == "/ready");
    assert_eq!(
        (&line["level"], &line["status"]),
        (&"ERROR".into(), &503.into()),
        "{line}"
    );
    assert!(
        line["cause"]
            .as_str()
            .is_some_and(|cause| cause.starts_with("storage: ")),
        "{line}"
    );

    server.start_again();
    wait_until(|| HttpClient::new(management).get("/ready").status == 200);
    wait_until(|| list(address).status == 200);
    wait_until(|| create(address).status == 201);
}

/// The permissions that `docs/operations/postgresql.md` names.
#[test]
fn the_documented_permissions_are_enough() {
    let database = PgDatabase::new();
    let user = database.user();
    assert_eq!(
        Program::with_postgres(database.url())
            .args(&["migrate"])
            .run()
            .code,
        Some(0)
    );
    let documentation = include_str!("../../../../docs/operations/postgresql.md");
    let lines = documentation.lines().map(str::trim_start);
    let is_grant = |line: &&str| line.starts_with("GRANT ") && line.ends_with(" TO store;");
    // The first block is that of the instances. The later ones are for commands.
    let grants: Vec<_> = lines
        .skip_while(|line| !is_grant(line))
        .take_while(is_grant)
        .collect();
    assert_eq!(grants.len(), 5);
    database.sql(
        &grants
            .join("\n")
            .replace("TO store;", &format!("TO {};", user.name)),
    );

    let mut running = Program::with_postgres(&user.url)
        .env("ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION", "1s")
        .start();
    let (address, management) = (running.address(), running.management_address());
    assert_eq!(create(address).status, 201);
    for _ in 0..2 {
        assert_eq!(
            keyed_create_request(address, TOKEN, "1", "Rex")
                .send()
                .status,
            201
        );
    }
    assert_eq!(list(address).status, 200);
    wait_until(|| database.sql("SELECT count(*) FROM idempotency_keys") == "0");
    assert_eq!(HttpClient::new(management).get("/ready").status, 200);
}
