//! At most one pet per idempotency key while two instances crash.
//!
//! One test forces each outcome of a crash. The other one takes random steps: it does not wait for responses between
//! them. Then it retries every create until its final response, and compares the table with the responses.

use std::{
    collections::BTreeMap,
    env,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::{PgDatabase, Request, Response};
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};

use crate::{
    pets::{is_replay, keyed_create_request},
    postgres::Gate,
    program::{DEADLINE, Program, Running, TOKEN},
};

/// Number of random cases. The environment variable overrides it for longer runs.
const CASES: u32 = 12;
const CASES_VARIABLE: &str = "IDEMPOTENCY_CRASH_CASES";
const KEYS: usize = 6;

/// Delays commits at random, so that crashes hit the time between an insert and its commit.
const SLOW_COMMITS: &str = "
    CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(random() * 0.02); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER slow_commits AFTER INSERT ON pets DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION take_time()";

/// Two instances with one database. The second one uses transactions that it commits itself.
fn program(database: &PgDatabase, instance: usize) -> Program {
    Program::with_postgres(database.url())
        .env("ANIMAL_STORE_HTTP__WORKERS", "1")
        .env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "1s")
        .env("ANIMAL_STORE_STORAGE__POSTGRES__TRANSACTION_POOLING", ["false", "true"][instance])
        .env("ANIMAL_STORE_STORAGE__POSTGRES__MIGRATE_URL", database.url())
}

#[test]
fn a_retry_replays_a_create_whose_response_a_crash_cut_off() {
    let database = PgDatabase::new();
    let mut instances = [0, 1]
        .map(|instance| program(&database, instance).env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "15s").start());
    let [killed, other] = instances.each_mut().map(|running| running.address());
    let request = |address| keyed_create_request(address, TOKEN, "order-1", "Rex");
    let gate = Gate::closed(&database);
    let mut cut_off = request(killed).begin().expect("a connection");
    gate.wait_for_insert();

    let conflict = request(killed).send();
    assert_eq!((conflict.status, conflict.header("retry-after")), (409, Some("1")), "{conflict:?}");
    instances[0].kill();
    cut_off.assert_closed();
    // PostgreSQL completes the statement of a client that has disconnected.
    gate.open();

    let start = Instant::now();
    let mut response = request(other).send();
    while response.status != 201 {
        assert_eq!(response.status, 503, "{response:?}");
        assert!(start.elapsed() < DEADLINE, "the create has no final response");
        response = request(other).send();
    }
    assert!(is_replay(&response), "{response:?}");
    assert_eq!(database.sql("SELECT name FROM pets"), "Rex");
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Sends a create and reads its response, or hangs up.
    Create { instance: usize, create: Create, hangs_up: bool },
    /// Kills an instance and restarts it.
    Kill(usize),
    /// Pauses for this number of milliseconds.
    Pause(u64),
}

/// An idempotency key, and one of two pets that it is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Create {
    key: usize,
    pet: usize,
}

impl Create {
    fn request(self, address: SocketAddr, case: usize) -> Request {
        keyed_create_request(address, TOKEN, &format!("order-{case}-{}", self.key), &self.name(case))
    }

    fn name(self, case: usize) -> String {
        format!("pet-{case}-{}-{}", self.key, self.pet)
    }
}

fn step() -> impl Strategy<Value = Step> {
    let instance = 0..2_usize;
    let pet = prop_oneof![7 => Just(0_usize), 1 => Just(1)];
    let create = (0..KEYS, pet).prop_map(|(key, pet)| Create { key, pet });
    prop_oneof![
        20 => (instance.clone(), create, prop::bool::weighted(0.1))
            .prop_map(|(instance, create, hangs_up)| Step::Create { instance, create, hangs_up }),
        2 => instance.prop_map(Step::Kill),
        5 => (1..12_u64).prop_map(Step::Pause),
    ]
}

type Responses = Vec<(Create, Response)>;

/// Locks a mutex that a failed case may have poisoned, because proptest runs a failed case again with fewer steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the steps, and returns when every request has a response or has lost its connection.
fn take_steps(steps: &[Step], case: usize, instances: &mut [Running; 2], database: &PgDatabase) -> Responses {
    let responses = Mutex::new(Responses::new());
    thread::scope(|scope| {
        for &step in steps {
            match step {
                Step::Create { instance, create, hangs_up } => {
                    let request = create.request(instances[instance].address(), case);
                    let mut connection = request.begin().expect("a connection");
                    if hangs_up {
                        continue;
                    }
                    let responses = &responses;
                    scope.spawn(move || {
                        // A kill ends the connection before or within the response.
                        let response = connection.try_response().ok().flatten();
                        lock(responses).extend(response.map(|response| (create, response)));
                    });
                }
                Step::Kill(instance) => {
                    instances[instance].kill();
                    instances[instance] = program(database, instance).start();
                }
                Step::Pause(milliseconds) => thread::park_timeout(Duration::from_millis(milliseconds)),
            }
        }
    });
    responses.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Retries every create of the case until its final response.
fn retry_all(case: usize, instances: &mut [Running; 2], responses: &mut Responses) {
    let start = Instant::now();
    for (key, pet) in (0..KEYS).flat_map(|key| [(key, 0), (key, 1)]) {
        let create = Create { key, pet };
        loop {
            let response = create.request(instances[key % 2].address(), case).send();
            let last = matches!(response.status, 201 | 422);
            responses.push((create, response));
            if last {
                break;
            }
            assert!(start.elapsed() < DEADLINE, "{create:?} has no final response");
        }
    }
}

/// Compares the responses of a case with each other and with the table.
fn check(case: usize, responses: &Responses, database: &PgDatabase) -> Result<(), TestCaseError> {
    let mut added: BTreeMap<usize, (Create, &Response)> = BTreeMap::new();
    for (create, response) in responses {
        match response.status {
            201 => {
                let (first, earlier) = *added.entry(create.key).or_insert((*create, response));
                prop_assert_eq!((first, earlier.text()), (*create, response.text()));
            }
            // 503: the create waited too long for another one.
            409 | 422 | 503 => {}
            _ => prop_assert!(false, "{:?}", response),
        }
    }
    for (create, _) in added.values() {
        let first = |response: &Response| response.status == 201 && !is_replay(response);
        let created = responses.iter().filter(|(other, response)| other == create && first(response)).count();
        prop_assert!(created <= 1, "{} responses to {:?} are not replays", created, create);
    }

    // Waits for statements of a killed instance that PostgreSQL still executes.
    let lock = "BEGIN; LOCK TABLE idempotency_keys, pets IN ACCESS EXCLUSIVE MODE; COMMIT";
    let rows = database.sql(&format!("{lock}; SELECT id, name FROM pets WHERE name LIKE 'pet-{case}-%' ORDER BY name"));
    let expected = added.values().map(|(create, response)| format!("{}|{}", response.json()["id"], create.name(case)));
    prop_assert_eq!(rows, expected.collect::<Vec<_>>().join("\n"));
    prop_assert_eq!(added.len(), KEYS);
    Ok(())
}

#[test]
fn every_key_adds_one_pet_whatever_is_retried_and_killed() {
    let database = PgDatabase::new();
    assert_eq!(Program::with_postgres(database.url()).args(&["migrate"]).run().code, Some(0));
    database.sql(SLOW_COMMITS);
    let state = Mutex::new((0.., [0, 1].map(|instance| program(&database, instance).start())));

    let cases = env::var_os(CASES_VARIABLE)
        .map_or(CASES, |text| text.to_str().and_then(|text| text.parse().ok()).expect("a number of cases"));
    let config = ProptestConfig { cases, max_shrink_time: 30_000, failure_persistence: None, ..Default::default() };
    let result = TestRunner::new(config).run(&vec(step(), 20..60), |steps| {
        let (numbers, instances) = &mut *lock(&state);
        let case = numbers.next().expect("an endless range");
        let mut responses = take_steps(&steps, case, instances, &database);
        retry_all(case, instances, &mut responses);
        check(case, &responses, &database)
    });

    result.unwrap_or_else(|error| panic!("{error}"));
}
