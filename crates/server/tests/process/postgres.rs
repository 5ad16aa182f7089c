//! The program with PostgreSQL: start, migrations, and loss of the database.

use std::net::SocketAddr;

use animal_store_test_servers::{HttpClient, PgDatabase, PostgresServer, Response, wait_until};

use crate::{
    pets::create_request,
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
fn migrate_prints_the_migrations_that_it_ran_and_a_dry_run_the_pending_ones() {
    let database = PgDatabase::new();
    let migrate = |args: &[&str]| {
        let exited = Program::with_postgres(database.url()).args(args).run();
        assert_eq!(exited.code, Some(0), "{exited:?}");
        let nothing = exited.stderr.iter().any(|line| line.contains("no migration is pending"));
        assert_eq!(nothing, exited.stdout.is_empty(), "{exited:?}");
        exited.stdout
    };
    let pending = migrate(&["migrate", "--dry-run"]);
    assert_eq!(pending, ["0001expand"]);
    assert_eq!(database.sql("SELECT to_regclass('pets') IS NULL"), "t");

    assert_eq!(migrate(&["migrate"]), pending);
    assert_eq!(database.sql("SELECT count(*) FROM pets"), "0");
    for args in [&["migrate"][..], &["migrate", "--dry-run"]] {
        assert_eq!(migrate(args), Vec::<String>::new());
    }
}

#[test]
fn a_failed_migrate_names_the_reason() {
    let memory = Program::new().args(&["migrate"]).run();
    memory.assert_error(1, &["animal-store: storage.backend is memory, which has no schema"]);

    let unavailable = Program::with_postgres("postgres://store:top-secret@127.0.0.1:1/store").args(&["migrate"]).run();
    assert_eq!(unavailable.code, Some(1));
    let output = unavailable.output();
    assert!(output.contains("refused") && !output.contains("top-secret"), "{unavailable:?}");
}

#[test]
fn with_migrate_check_pending_migrations_prevent_the_start() {
    let database = PgDatabase::new();
    let check = || Program::with_postgres(database.url()).env("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE", "check");

    let exited = check().run();
    assert_eq!(exited.code, Some(1));
    assert!(!exited.output().contains("requests get 503"), "{exited:?}");
    let stderr = exited.stderr.join("\n");
    assert!(stderr.contains("0001expand") && stderr.contains("animal-store migrate"), "{stderr}");

    assert_eq!(Program::with_postgres(database.url()).args(&["migrate"]).run().code, Some(0));
    assert_eq!(list(check().start().address()).status, 200);
}

#[test]
fn a_schema_expanded_by_a_newer_program_is_one_warning_while_migrations_are_pending() {
    let database = PgDatabase::new();
    database.sql(
        "CREATE TABLE __diesel_schema_migrations (version varchar(50) PRIMARY KEY, run_on timestamp DEFAULT now());
        INSERT INTO __diesel_schema_migrations (version) VALUES ('9998expand')",
    );
    let mut running = Program::with_postgres(database.url()).start();
    assert_eq!(list(running.address()).status, 200);
    let lines = running.terminate().stdout;
    let warnings: Vec<_> = lines.iter().filter(|line| line.contains("9998expand")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains(r#""level":"WARN""#), "{lines:?}");
}

#[test]
fn a_wrong_password_is_reported_without_showing_it() {
    let server = PostgresServer::with_password("right-password");
    let url = server.url("postgres").replace("postgres@", "postgres:wrong-password@");

    let mut running = Program::with_postgres(&url).start();
    let reason = running.wait_for_reason("animal_store_adapters_postgres");
    assert!(reason.contains("password authentication failed"), "{reason}");
    assert!(!running.terminate().output().contains("wrong-password"));

    let exported = Program::with_postgres(&url).args(&["pets", "export"]).run();
    assert_eq!(exported.code, Some(1));
    assert!(exported.stderr.join("\n").contains("password authentication failed"), "{exported:?}");
    assert!(!["requests get 503", "wrong-password"].iter().any(|text| exported.output().contains(text)));
}

#[test]
fn an_unavailable_postgresql_is_a_503_until_it_is_available() {
    let mut server = PostgresServer::start();
    server.stop();
    let mut running = Program::with_postgres(&server.url("postgres")).start();
    let (address, management) = (running.address(), running.management_address());

    for response in [list(address), create(address), HttpClient::new(management).get("/ready")] {
        assert_eq!(response.status, 503, "{response:?}");
    }
    assert_eq!(HttpClient::new(management).get("/live").status, 200);

    server.start_again();
    wait_until(|| HttpClient::new(management).get("/ready").status == 200);
    wait_until(|| list(address).status == 200);
    wait_until(|| create(address).status == 201);
}

#[test]
fn a_notice_of_postgresql_is_logged_without_a_path_of_the_machine_that_built_the_program() {
    let database = PgDatabase::new();
    let mut running = Program::with_postgres(database.url()).start();
    let address = running.address();
    database.sql(
        "CREATE FUNCTION notify() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RAISE NOTICE ''a notice''; RETURN NEW; END';
        CREATE TRIGGER notify BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION notify()",
    );
    assert_eq!(create(address).status, 201);
    let event = running.wait_for_event("NOTICE: a notice");
    assert_eq!(event["target"], "tokio_postgres::connection");
    assert!(!event.to_string().contains('/'), "{event}");
}
