//! Kills: of the first start, and of two instances that create pets with the same idempotency keys.

use std::{
    collections::BTreeMap,
    env,
    hash::{BuildHasher, Hasher, RandomState},
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use animal_store_test_servers::{PgDatabase, Response, wait_until};
use tempfile::TempDir;

use crate::{
    keys::token_and_id,
    pets::{is_replay, keyed_create_request, list_all, status},
    postgres::Gate,
    program::{Program, TOKEN},
    quickstart::token,
    store::Store,
};

/// Clients of each instance. A client of one instance sends the same creates as a client of the other one.
const CLIENTS: usize = 4;

/// The body of the first 201 to each key, if there was one.
type Bodies = BTreeMap<String, Option<String>>;

/// Number of rounds. The environment variable is for longer runs.
fn rounds() -> usize {
    env::var_os("CRASH_ROUNDS").map_or(12, |text| text.to_string_lossy().parse().expect("a number of rounds"))
}

/// Pauses for a random time: what must hold after a kill holds whenever it happens.
fn pause() {
    let random = RandomState::new().build_hasher().finish();
    thread::park_timeout(Duration::from_micros(random % 150_000));
}

/// Retries a create until its 201, or until the process is killed. Compares the body with that of an earlier 201.
fn create_once(address: SocketAddr, key: &str, bodies: &Mutex<Bodies>) -> Option<Response> {
    bodies.lock().unwrap_or_else(PoisonError::into_inner).entry(key.to_owned()).or_default();
    loop {
        let response = keyed_create_request(address, TOKEN, key, key).begin().ok()?.try_response().ok()??;
        if response.status == 201 {
            let mut bodies = bodies.lock().expect("no client panics");
            assert_eq!(response.text(), bodies.get_mut(key)?.get_or_insert_with(|| response.text().to_owned()));
            return Some(response);
        }
        // The other instance creates the pet, or has left a statement that PostgreSQL still executes.
        assert!(matches!(response.status, 409 | 503), "{response:?}");
    }
}

#[test]
fn after_a_kill_of_the_first_start_the_next_one_works() {
    for _ in 0..rounds() {
        let folder = TempDir::new().unwrap();
        let killed = Program::in_folder(folder.path()).args(&["--print-key"]).start();
        pause();
        killed.signal("KILL");
        let killed = killed.wait();
        assert_eq!(killed.code, None, "{killed:?}");

        let mut running = Program::in_folder(folder.path()).start();
        let address = running.address();
        let token = match killed.stderr.iter().find(|line| line.contains("?status=")) {
            Some(printed) => token(printed),
            None => token_and_id(&Program::in_folder(folder.path()).args(&["keys", "create", "--label", "x"]).run()).0,
        };
        wait_until(|| status(address, &token) == 200);
    }
}

#[test]
fn after_kills_every_acknowledged_pet_is_stored_and_each_key_has_one_pet() {
    for store in Store::each() {
        let bodies = Mutex::<Bodies>::default();
        for round in 0..rounds() {
            let mut instances = [store.program().start(), store.program().start()];
            let addresses = instances.each_mut().map(|running| running.address());
            thread::scope(|scope| {
                for (address, client) in addresses.iter().flat_map(|address| (0..CLIENTS).map(move |i| (address, i))) {
                    let bodies = &bodies;
                    scope.spawn(move || {
                        let mut keys = (0..).map(|number| format!("pet-{round}-{client}-{number}"));
                        keys.find(|key| create_once(*address, key, bodies).is_none())
                    });
                }
                for running in &mut instances {
                    pause();
                    running.kill();
                }
            });
        }

        let mut running = store.program().start();
        let address = running.address();
        let keys: Vec<_> = bodies.lock().unwrap().iter().map(|(key, body)| (key.clone(), body.is_some())).collect();
        assert!(keys.len() > rounds(), "{keys:?}");
        for (key, is_acknowledged) in &keys {
            // Creates without a response get one now, whether they were stored or not.
            let response = create_once(address, key, &bodies).expect("a response");
            assert!(!is_acknowledged || is_replay(&response), "{key}");
        }
        let mut bodies = bodies.into_inner().unwrap();
        for pet in list_all(address, TOKEN) {
            let body = bodies.remove(pet["name"].as_str().expect("a name")).flatten();
            let body = body.unwrap_or_else(|| panic!("it is stored twice: {pet}"));
            assert_eq!(pet, serde_json::from_str::<serde_json::Value>(&body).expect("a pet"));
        }
        assert!(bodies.is_empty(), "not stored: {bodies:?}");
    }
}

#[test]
fn a_retry_replays_a_create_whose_response_a_crash_cut_off() {
    let database = PgDatabase::new();
    let mut instances = [(); 2].map(|()| Program::with_postgres(database.url()).start());
    let [killed, other] = instances.each_mut().map(|running| running.address());
    let request = |address| keyed_create_request(address, TOKEN, "order-1", "Rex");
    let gate = Gate::closed(&database);
    let mut cut_off = request(killed).begin().expect("a connection");
    gate.wait_for_insert();

    instances[0].kill();
    cut_off.assert_closed();
    // PostgreSQL completes the statement of a client that has disconnected.
    gate.open();
    wait_until(|| database.sql("SELECT name FROM pets") == "Rex");

    assert!(is_replay(request(other).send().assert_status(201)));
    assert_eq!(database.sql("SELECT name FROM pets"), "Rex");
}
