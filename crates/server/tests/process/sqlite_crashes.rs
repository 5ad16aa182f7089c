//! Kills at random moments: of the first start, and of creates.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, Hasher, RandomState},
    net::SocketAddr,
    path::Path,
    sync::Mutex,
    thread,
    time::Duration,
};

use animal_store_test_servers::{HttpClient, Response};
use tempfile::TempDir;

use crate::{
    keys::token_and_id,
    pets::{is_replay, keyed_create_request, list_all},
    program::{Program, TOKEN},
    quickstart::token,
};

const ROUNDS: usize = 20;
const CLIENTS: usize = 8;

/// Pauses for a random time of up to this number of milliseconds.
fn pause(milliseconds: u64) {
    let random = RandomState::new().build_hasher().finish();
    thread::park_timeout(Duration::from_micros(random % (milliseconds * 1000)));
}

/// A program with pets in the file of a folder, and with the key [`TOKEN`].
fn program(folder: &Path) -> Program {
    Program::in_folder(folder).env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", TOKEN)
}

/// Sends a create. `None` if the process is killed before its response is complete.
fn create(address: SocketAddr, key: &str) -> Option<Response> {
    keyed_create_request(address, TOKEN, key, key).begin().ok()?.try_response().ok()?
}

#[test]
fn after_a_kill_of_the_first_start_the_next_one_works() {
    for _ in 0..ROUNDS {
        let folder = TempDir::new().unwrap();
        let killed = Program::in_folder(folder.path()).start();
        pause(150);
        killed.signal("KILL");
        let killed = killed.wait();
        assert_eq!(killed.code, None, "{killed:?}");

        let mut running = Program::in_folder(folder.path()).start();
        let address = running.address();
        let token = match killed.stderr.iter().find(|line| line.contains("?status=")) {
            Some(printed) => token(printed),
            None => token_and_id(&Program::in_folder(folder.path()).args(&["keys", "create", "--label", "x"]).run()).0,
        };
        let client = HttpClient::new(address).with_token(&token);
        animal_store_test_servers::wait_until(|| client.get("/v1/pets").status == 200);
    }
}

#[test]
fn after_kills_every_acknowledged_pet_is_in_the_file_and_each_key_has_one_pet() {
    let folder = TempDir::new().unwrap();
    let acknowledged: Mutex<BTreeMap<String, String>> = Mutex::default();
    for round in 0..ROUNDS {
        let mut running = program(folder.path()).start();
        let address = running.address();
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let acknowledged = &acknowledged;
                scope.spawn(move || {
                    for key in (0..).map(|number| format!("pet-{round}-{client}-{number}")) {
                        let Some(response) = create(address, &key) else { return };
                        let body = response.assert_status(201).text().to_owned();
                        acknowledged.lock().unwrap().insert(key, body);
                    }
                });
            }
            pause(150);
            running.kill();
        });
    }

    let acknowledged = acknowledged.into_inner().unwrap();
    let mut running = program(folder.path()).start();
    let address = running.address();
    for (key, body) in acknowledged.iter().step_by(10) {
        let response = create(address, key).expect("a response");
        assert_eq!((response.status, is_replay(&response), response.text()), (201, true, &**body), "{response:?}");
    }
    // The last creates of each round had no response; a retry has one, whether they were stored or not.
    for key in (0..ROUNDS * CLIENTS).map(|index| {
        let start = format!("pet-{}-{}-", index / CLIENTS, index % CLIENTS);
        let done = acknowledged.keys().filter(|key| key.starts_with(&start)).count();
        format!("{start}{done}")
    }) {
        create(address, &key).expect("a response").assert_status(201);
    }
    let pets = list_all(address, TOKEN);
    let names: BTreeMap<_, _> = pets.iter().map(|pet| (pet["name"].as_str().unwrap(), pet.to_string())).collect();
    assert_eq!(
        (names.len(), pets.len()),
        (acknowledged.len() + ROUNDS * CLIENTS, acknowledged.len() + ROUNDS * CLIENTS)
    );
    for (key, body) in &acknowledged {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(names.get(&**key), Some(&body.to_string()));
    }
}
