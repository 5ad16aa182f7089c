//! Acknowledged pets survive a crash.

use std::{collections::BTreeMap, net::SocketAddr, sync::mpsc, thread};

use animal_store_test_servers::PgDatabase;

use crate::{
    pets::create_request,
    program::{Program, Running, TOKEN},
};

const CLIENTS: usize = 64;
/// The process is killed after this number of responses, while other requests are in flight.
const RESPONSES: usize = 500;

/// Creates a pet and returns its id. `None` if the process was killed before its response was complete.
fn create(address: SocketAddr, name: &str) -> Option<i64> {
    let mut connection = create_request(address, TOKEN, name).begin().ok()?;
    let response = connection.try_response().ok()??;
    let pet = response.assert_status(201).json();
    assert_eq!(pet["name"], name);
    pet["id"].as_i64()
}

/// Creates pets until the process is killed. Returns the id of each acknowledged pet by its name.
fn create_until_killed(mut running: Running) -> BTreeMap<String, i64> {
    let address = running.address();
    let (sender, responses) = mpsc::channel();
    let mut acknowledged: BTreeMap<String, i64> = BTreeMap::new();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let sender = sender.clone();
            scope.spawn(move || {
                for name in (0..).map(|number| format!("pet-{client}-{number}")) {
                    let Some(id) = create(address, &name) else { return };
                    sender.send((name, id)).expect("the test receives");
                }
            });
        }
        drop(sender);
        acknowledged.extend(responses.iter().take(RESPONSES));
        running.kill();
        assert_eq!(acknowledged.len(), RESPONSES, "the clients stopped before the kill");
        acknowledged.extend(responses);
    });
    acknowledged
}

#[track_caller]
fn assert_stored_once(acknowledged: &BTreeMap<String, i64>, stored: &[(&str, i64)]) {
    let by_name: BTreeMap<_, _> = stored.iter().copied().collect();
    assert_eq!(by_name.len(), stored.len(), "a pet is stored twice");
    for (name, id) in acknowledged {
        assert_eq!(by_name.get(name.as_str()), Some(id), "{name}");
    }
}

#[test]
fn after_a_kill_every_acknowledged_pet_is_in_postgresql_once() {
    let database = PgDatabase::new();
    let acknowledged = create_until_killed(Program::with_postgres(database.url()).start());

    // Waits for statements that PostgreSQL still executes.
    database.sql("BEGIN; LOCK TABLE pets IN ACCESS EXCLUSIVE MODE; COMMIT");
    let rows = database.sql("SELECT name, id FROM pets");
    let stored: Vec<_> = rows.lines().filter_map(|row| row.split_once('|')).collect();
    let stored: Vec<_> = stored.into_iter().map(|(name, id)| (name, id.parse().expect("an id"))).collect();
    assert_stored_once(&acknowledged, &stored);
}
