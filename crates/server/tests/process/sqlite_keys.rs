//! `animal-store keys` beside running servers on one file, and two servers on one file.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::{HttpClient, wait_until};
use tempfile::TempDir;

use crate::{
    keys::token_and_id,
    pets::{create_request, list_all},
    program::{Program, Running},
};

/// Longest time for which a key that another process revoked is accepted.
const BOUND: Duration = Duration::from_millis(100);

fn keys(folder: &Path, args: &[&str]) -> Program {
    Program::in_folder(folder).args(&["keys"]).args(args)
}

fn start(folder: &Path) -> (Running, SocketAddr) {
    let mut running = Program::in_folder(folder).start();
    let address = running.address();
    (running, address)
}

fn status(address: SocketAddr, token: &str) -> u16 {
    HttpClient::new(address).with_token(token).get("/v1/pets").status
}

/// Creates pets and returns their ids.
fn create_pets(address: SocketAddr, token: &str, count: usize) -> Vec<i64> {
    let create = || create_request(address, token, "Rex").send().assert_status(201).json();
    (0..count).map(|_| create()["id"].as_i64().expect("an id")).collect()
}

#[test]
fn keys_are_administered_beside_a_running_server() {
    let folder = TempDir::new().unwrap();
    let (_running, address) = start(folder.path());

    let (old, id) = token_and_id(&keys(folder.path(), &["create", "--label", "shop"]).run());
    wait_until(|| status(address, &old) == 200);

    let (new, same) = token_and_id(&keys(folder.path(), &["rotate", &id, "--grace", "0s"]).run());
    assert_eq!(same, id);
    wait_until(|| (status(address, &new), status(address, &old)) == (200, 401));

    let listed = keys(folder.path(), &["list"]).run();
    for label in ["quickstart", "shop"] {
        assert!(listed.stdout.iter().any(|line| line.contains(label)), "{listed:?}");
    }
    assert_eq!(keys(folder.path(), &["revoke", &id]).run().code, Some(0));
    wait_until(|| status(address, &new) == 401);
}

#[test]
fn only_the_flag_create_creates_the_file() {
    let folder = TempDir::new().unwrap();
    for args in [&["list"][..], &["revoke", "a"], &["rotate", "a"], &["create", "--label", "shop"]] {
        let exited = keys(folder.path(), args).run();
        assert_eq!(exited.code, Some(1), "{args:?}");
        let error = exited.stderr.join("");
        assert!(error.contains("animal-store.db: the file does not exist"), "{exited:?}");
        assert_eq!(error.ends_with("to make a new store, add --create"), args[0] == "create", "{exited:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    assert_eq!(keys(folder.path(), &["create", "--create", "--label", "shop"]).run().code, Some(0));
}

#[test]
fn two_servers_on_one_file_serve_the_same_pets() {
    let folder = TempDir::new().unwrap();
    let (token, _) = token_and_id(&keys(folder.path(), &["create", "--create", "--label", "shop"]).run());
    let servers = [start(folder.path()), start(folder.path())];

    let ids: Vec<_> = thread::scope(|scope| {
        let (token, [first, second]) = (&token, servers.each_ref().map(|(_, address)| *address));
        let clients =
            [first, second, first, second].map(|address| scope.spawn(move || create_pets(address, token, 25)));
        clients.into_iter().flat_map(|client| client.join().expect("it creates pets")).collect()
    });

    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 100);
    let [first, second] = servers.each_ref().map(|(_, address)| list_all(*address, &token));
    assert_eq!((first.len(), &first), (100, &second));
}

#[test]
fn a_key_that_is_revoked_by_a_command_is_refused_by_every_server_in_time() {
    let folder = TempDir::new().unwrap();
    let servers = [start(folder.path()), start(folder.path())];
    for _ in 0..3 {
        let (token, id) = token_and_id(&keys(folder.path(), &["create", "--label", "shop"]).run());
        wait_until(|| servers.iter().all(|(_, address)| status(*address, &token) == 200));

        assert_eq!(keys(folder.path(), &["revoke", &id]).run().code, Some(0));
        let revoked = Instant::now();
        for (_, address) in &servers {
            let mut sent = Instant::now();
            while status(*address, &token) == 200 {
                assert!(sent - revoked < BOUND, "accepted {:?} after its end", sent - revoked);
                sent = Instant::now();
            }
            assert_eq!(status(*address, &token), 401);
        }
    }
}
