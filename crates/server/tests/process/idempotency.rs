//! `Idempotency-Key` across processes: rotations of the API key, restarts, several instances; and what is configured.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use animal_store_test_servers::{PgDatabase, RedisSpace};
use serde_json::Value;

use crate::{
    keys::{keys, token_and_id},
    postgres::{over, wait_until},
    program::{DEADLINE, Program, TOKEN, read_to_end, send},
};

const RETENTION: &str = "ANIMAL_STORE_STORAGE__IDEMPOTENCY_RETENTION";

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) replayed: bool,
    pub(crate) body: String,
}

/// A create of this animal with this field `Idempotency-Key`, to be sent on a connection of its own.
pub(crate) fn keyed_create(token: &str, key: &str, name: &str) -> String {
    let body = format!(r#"{{"name":"{name}","categoryId":1}}"#);
    let head = format!("POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n");
    let fields = format!("Content-Type: application/json\r\nContent-Length: {}", body.len());
    format!("{head}Idempotency-Key: {key}\r\n{fields}\r\n\r\n{body}")
}

/// Everything that a connection gave until its end; `None` where that is no complete answer.
pub(crate) fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let head = head.to_lowercase();
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let length: usize = field("content-length")?.parse().expect("a length");
    let status = text.get(9..12)?.parse().expect("a status");
    let replayed = field("idempotency-replayed").is_some_and(|value| value == "true");
    (body.len() == length).then(|| Answer { status, replayed, body: body.to_owned() })
}

#[track_caller]
fn create(address: SocketAddr, token: &str, key: &str, name: &str) -> Answer {
    parse(&read_to_end(send(address, &keyed_create(token, key, name)))).expect("an answer")
}

/// It added an animal. Returns what an answer to the same has to be from now on.
#[track_caller]
fn assert_added(answer: &Answer) -> Answer {
    assert_eq!((answer.status, answer.replayed), (201, false), "{answer:?}");
    Answer { replayed: true, ..answer.clone() }
}

#[test]
fn a_key_outlives_the_token_that_it_was_used_with() {
    let space = RedisSpace::new();
    let (old, id) = token_and_id(&keys(&space, &["create", "--label", "shop"]).run());
    let (other, _) = token_and_id(&keys(&space, &["create", "--label", "shop"]).run());
    let program = Program::with_redis(space.url()).env("ANIMAL_STORE_KEYS__REDIS__PREFIX", space.prefix());
    let mut running = program.start();
    let address = running.address();
    let replay = assert_added(&create(address, &old, "order-1", "Rex"));

    let (new, _) = token_and_id(&keys(&space, &["rotate", &id]).run());

    assert_eq!(create(address, &new, "order-1", "Rex"), replay);
    assert_eq!(create(address, &new, "order-1", "Tom").status, 422);
    let replay = assert_added(&create(address, &new, "order-2", "Rex"));
    assert_eq!(create(address, &old, "order-2", "Rex"), replay);
    // Another API key with the same label.
    assert_added(&create(address, &other, "order-1", "Rex"));
}

#[test]
fn in_postgresql_a_key_outlives_the_process_and_holds_for_every_other() {
    let database = PgDatabase::new();
    let mut instances = [(), ()].map(|()| over(database.url()).start());
    let [here, there] = instances.each_mut().map(|running| running.address());
    let replay = assert_added(&create(here, TOKEN, "order-1", "Rex"));

    assert_eq!(create(there, TOKEN, "\"order-1\"", "Rex"), replay);
    assert_eq!(create(there, TOKEN, "order-1", "Tom").status, 422);
    drop(instances);

    let mut running = over(database.url()).start();
    assert_eq!(create(running.address(), TOKEN, "order-1", "Rex"), replay);
    assert_eq!(create(running.address(), TOKEN, "order-1", "Tom").status, 422);
    assert_eq!(database.sql("SELECT name FROM pets"), "Rex");
}

#[test]
fn a_process_that_stands_still_between_a_create_and_its_commit_does_not_hold_the_key() {
    let database = PgDatabase::new();
    let [mut frozen, mut running] = [(), ()].map(|()| {
        // As behind a pooler: the transaction is ended by the program.
        over(database.url())
            .env("ANIMAL_STORE_STORAGE__POSTGRES__TRANSACTION_POOLING", "true")
            .env("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE_URL", database.url())
            .start()
    });
    let (there, here) = (frozen.address(), running.address());
    assert_added(&create(there, TOKEN, "order-1", "Rex"));
    database.sql(
        "CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END';
        CREATE TRIGGER slow BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION take_time()",
    );
    let _unanswered = send(there, &keyed_create(TOKEN, "order-2", "Tom"));
    let state = |name: &str| {
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND";
        wait_until(|| database.sql(&format!("{sessions} {name}")) == "1");
    };
    state("wait_event = 'PgSleep'");
    frozen.signal("STOP");
    state("state = 'idle in transaction'");

    let start = Instant::now();
    let mut answer = create(here, TOKEN, "order-2", "Tom");
    while answer.status != 201 {
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(start.elapsed() < DEADLINE, "the key is never free");
        answer = create(here, TOKEN, "order-2", "Tom");
    }

    let replay = assert_added(&answer);
    frozen.signal("CONT");
    assert_eq!(create(here, TOKEN, "order-2", "Tom"), replay);
    assert_eq!(database.sql("SELECT name FROM pets ORDER BY name"), "Rex\nTom");
}

/// Retries until that adds a second animal.
fn assert_free_after_a_second(program: Program) {
    let mut running = program.env(RETENTION, "1s").start();
    let address = running.address();
    let start = Instant::now();
    let replay = assert_added(&create(address, TOKEN, "order-1", "Rex"));

    let mut answer = create(address, TOKEN, "order-1", "Rex");
    while answer.replayed {
        assert_eq!(answer, replay);
        assert!(start.elapsed() < DEADLINE, "the key is never free");
        answer = create(address, TOKEN, "order-1", "Rex");
    }

    let kept = start.elapsed();
    let again = assert_added(&answer);
    // It keeps the time of another clock.
    assert!(kept > Duration::from_millis(990), "free after {kept:?}");
    let id =
        |answer: &Answer| serde_json::from_str::<Value>(&answer.body).expect("JSON")["id"].as_i64().expect("an id");
    assert!(id(&again) > id(&replay), "{again:?} after {replay:?}");
}

#[test]
fn in_memory_a_key_is_free_after_its_retention() {
    assert_free_after_a_second(Program::with_key());
}

#[test]
fn in_postgresql_a_key_is_free_after_its_retention() {
    assert_free_after_a_second(over(PgDatabase::new().url()));
}

#[test]
fn the_longest_retention_is_one_that_postgresql_can_count() {
    let database = PgDatabase::new();
    let mut running = over(database.url()).env(RETENTION, "30d").start();

    let replay = assert_added(&create(running.address(), TOKEN, "order-1", "Rex"));

    assert_eq!(create(running.address(), TOKEN, "order-1", "Rex"), replay);
    let end = "round(extract(epoch FROM expires_at - now()) / 86400)";
    assert_eq!(database.sql(&format!("SELECT {end} FROM idempotency_keys")), "30");
}

#[test]
fn a_retention_that_is_none_is_refused() {
    for backend in ["memory", "postgres"] {
        for value in ["", "0s", "999ms", "1", "soon", "-1s", "30d 1ms", "1y"] {
            let program = if backend == "memory" { Program::with_key() } else { over("postgres://127.0.0.1:1/store") };
            let ended = program.env(RETENTION, value).run();
            assert_eq!((ended.code, &ended.stdout), (Some(2), &vec![]), "{backend}, {value:?}: {ended:?}");
            let rule = "must be a duration from 1s to 30days, such as 5s, not";
            let problem = format!("storage.idempotency_retention ({RETENTION}) {rule} {value:?}");
            assert!(ended.stderr.join("\n").contains(&problem), "{problem}: {ended:?}");
        }
    }
}
