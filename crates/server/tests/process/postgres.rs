//! The program over PostgreSQL: how it starts, what it says, and how it gets over the loss of it.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use animal_store_test_servers::{FaultProxy, PgDatabase, PostgresServer};

use crate::program::{DEADLINE, Program, TOKEN, get, read_to_end, send};

const AWAY: &str = "no connection to PostgreSQL: requests are answered 503";

pub(crate) fn over(url: &str) -> Program {
    Program::with_key()
        .env("ANIMAL_STORE_STORAGE__BACKEND", "postgres")
        .env("ANIMAL_STORE_STORAGE__POSTGRES__URL", url)
        .env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "1s")
        .env("ANIMAL_STORE_STORAGE__POSTGRES__CONNECT_TIMEOUT", "1s")
}

pub(crate) fn status(answer: &str) -> u16 {
    answer[9..12].parse().expect("a status")
}

pub(crate) fn list(address: SocketAddr) -> String {
    get(address, "/v1/pets", TOKEN)
}

pub(crate) fn create(address: SocketAddr) -> String {
    let head = format!("POST /v1/pets HTTP/1.1\r\nHost: store.example\r\nAuthorization: Bearer {TOKEN}\r\n");
    let body = r#"{"name":"Rex","categoryId":1}"#;
    let fields = format!("Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close", body.len());
    read_to_end(send(address, &format!("{head}{fields}\r\n\r\n{body}")))
}

#[track_caller]
fn wait_for(expected: u16, ask: impl Fn() -> String) {
    let start = Instant::now();
    while status(&ask()) != expected {
        assert!(start.elapsed() < DEADLINE, "{} instead of {expected}", ask());
    }
}

#[track_caller]
pub(crate) fn wait_until(happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < DEADLINE, "it does not happen");
    }
}

#[test]
fn animals_survive_the_end_of_the_process() {
    let database = PgDatabase::new();
    let mut running = over(database.url()).start();
    assert_eq!(status(&create(running.address())), 201);
    running.signal("TERM");
    assert_eq!(running.wait().code, Some(0));

    let answer = list(over(database.url()).start().address());
    assert!(answer.ends_with(r#"[{"id":1,"name":"Rex","categoryId":1}]"#), "{answer}");
}

#[test]
fn migrate_prints_what_it_does_and_a_dry_run_what_it_would_do() {
    let database = PgDatabase::new();
    let dry_run = over(database.url()).args(&["migrate", "--dry-run"]).run();
    assert_eq!((dry_run.code, dry_run.stdout.len()), (Some(0), 2), "{dry_run:?}");
    assert_eq!(database.sql("SELECT to_regclass('pets') IS NULL"), "t");

    let migrate = over(database.url()).args(&["migrate"]).run();
    assert_eq!((migrate.code, &migrate.stdout), (Some(0), &dry_run.stdout), "{migrate:?}");
    assert_eq!(database.sql("SELECT count(*) FROM pets"), "0");

    let again = over(database.url()).args(&["migrate"]).run();
    assert_eq!((again.code, again.stdout.len()), (Some(0), 0), "{again:?}");
}

#[test]
fn migrate_says_why_it_cannot() {
    let memory = Program::new().args(&["migrate"]).run();
    assert_eq!(memory.code, Some(1));
    assert_eq!(memory.stderr, ["animal-store: storage.backend is memory: it has no schema"]);

    let nowhere = over("postgres://store:top-secret@127.0.0.1:1/store").args(&["migrate"]).run();
    assert_eq!(nowhere.code, Some(1));
    assert!(nowhere.output().contains("refused") && !nowhere.output().contains("top-secret"), "{nowhere:?}");
}

#[test]
fn pending_migrations_end_a_start_that_is_to_check_and_the_line_says_what_to_run() {
    let database = PgDatabase::new();
    let check = || over(database.url()).env("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE", "check");

    let ended = check().run();
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.join("\n").contains("_expand_create_idempotency_keys; run `animal-store migrate`"),
        "{ended:?}"
    );

    assert_eq!(over(database.url()).args(&["migrate"]).run().code, Some(0));
    assert_eq!(status(&list(check().start().address())), 200);
}

#[test]
fn a_schema_that_a_newer_program_has_expanded_is_one_warning_and_a_contracted_one_ends_the_start() {
    let database = PgDatabase::new();
    assert_eq!(over(database.url()).args(&["migrate"]).run().code, Some(0));
    database.sql("INSERT INTO __diesel_schema_migrations (version) VALUES ('9998_expand_colours')");
    let mut running = over(database.url()).start();
    assert_eq!(status(&list(running.address())), 200);
    running.signal("TERM");
    let lines = running.wait().stdout;
    let warnings: Vec<_> = lines.iter().filter(|line| line.contains("9998_expand_colours")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains(r#""level":"WARN""#), "{lines:?}");

    database.sql("INSERT INTO __diesel_schema_migrations (version) VALUES ('9999_contract_names')");
    let ended = over(database.url()).run();
    assert_eq!(ended.code, Some(1));
    let told = "a newer program has made changes that this one cannot work with: 9999_contract_names";
    assert!(ended.stderr.join("\n").contains(told), "{ended:?}");
}

#[test]
fn a_wrong_password_is_told_and_is_no_part_of_it() {
    let server = PostgresServer::with_password("right-password");
    let url = server.url("postgres").replace("postgres@", "postgres:wrong-password@");

    let mut running = over(&url).start();
    let reason = running.wait_for_event(AWAY);
    assert!(reason["reason"].as_str().expect("a text").contains("password authentication failed"), "{reason}");
    assert_eq!(status(&list(running.address())), 503);
    running.signal("TERM");
    assert!(!running.wait().output().contains("wrong-password"));

    let insisting = over(&url).env("ANIMAL_STORE_STORAGE__POSTGRES__REQUIRED_AT_START", "true").run();
    assert_eq!(insisting.code, Some(1));
    assert!(insisting.stderr.join("\n").contains("password authentication failed"), "{insisting:?}");
    assert!(!insisting.output().contains("wrong-password"));
}

#[test]
fn it_starts_without_postgresql_is_not_ready_and_becomes_ready() {
    let mut server = PostgresServer::start();
    server.stop();
    let mut running = over(&server.url("postgres")).start();
    let (address, management) = (running.address(), running.management_address());
    for answer in [list(address), create(address), get(management, "/ready", "")] {
        assert_eq!(status(&answer), 503, "{answer}");
    }
    assert_eq!(status(&get(management, "/live", "")), 200);

    server.start_again();
    wait_for(200, || get(management, "/ready", ""));
    assert_eq!(status(&create(address)), 201);
    assert_eq!(status(&list(address)), 200);
}

#[test]
fn a_restart_of_postgresql_is_a_503_and_then_over() {
    let mut server = PostgresServer::start();
    let mut running = over(&server.url("postgres")).start();
    let (address, management) = (running.address(), running.management_address());
    assert_eq!(status(&create(address)), 201);

    server.stop();
    for _ in 0..10 {
        for answer in [list(address), create(address)] {
            assert_eq!(status(&answer), 503, "{answer}");
        }
    }
    assert_eq!(status(&get(management, "/ready", "")), 503);

    server.start_again();
    wait_for(200, || list(address));
    wait_for(201, || create(address));
    wait_for(200, || get(management, "/ready", ""));
}

#[test]
fn postgresql_that_does_not_answer_is_a_503_within_the_deadline_and_its_body_says_nothing_of_it() {
    let database = PgDatabase::new();
    let port = database.sql("SELECT inet_server_port()").parse().expect("a port");
    let mut proxy = FaultProxy::to(port);
    let url = format!("postgres://postgres@{}/{}", proxy.address(), database.name());
    let mut running = over(&url).start();
    let (address, management) = (running.address(), running.management_address());
    // Every connection is open by then.
    wait_for(200, || get(management, "/ready", ""));
    wait_for(200, || list(address));

    proxy.freeze();
    let start = Instant::now();
    let answer = list(address);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(status(&answer), 503);
    assert!(answer.to_lowercase().contains("\r\nretry-after: "), "{answer}");
    let body = answer.split_once("\r\n\r\n").expect("a body").1;
    assert!(!body.to_lowercase().contains("postgres") && !body.contains("time"), "{body}");

    // Its outcome is not known: it was sent.
    let answer = create(address);
    assert!(status(&answer) == 503 && answer.contains(r#""outcome_unknown""#), "{answer}");
    assert!(!answer.to_lowercase().contains("\r\nretry-after: "), "{answer}");

    proxy.heal();
    wait_for(200, || list(address));
    wait_for(201, || create(address));
}

#[test]
fn a_row_that_is_no_animal_is_a_500_and_a_line_with_table_column_and_id() {
    let database = PgDatabase::new();
    let mut running = over(database.url()).start();
    let address = running.address();
    database.sql("INSERT INTO pets (name, category_id) VALUES ('  ', 1)");

    let answer = list(address);

    assert_eq!(status(&answer), 500, "{answer}");
    assert!(!answer.contains("pets,") && answer.contains(r#""internal_error""#), "{answer}");
    let line = running.wait_for_event("request");
    let cause = line["cause"].as_str().expect("a cause");
    assert!(cause.contains("table pets, column name, id 1: must not be blank"), "{line}");
    assert_eq!(line["level"], "ERROR");
}
