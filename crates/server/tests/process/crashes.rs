//! Kills: of the first start, and of an instance that creates a pet. `adapters-sqlite/tests/sqlite/kills.rs` has those
//! of two processes that create pets in one file with the same keys.

use std::path::Path;

use animal_store_test_servers::{PgDatabase, wait_until};
use tempfile::TempDir;

use crate::{
    keys::token_and_id,
    pets::{is_replay, keyed_create_request, status},
    postgres::Gate,
    program::{Program, Running, TOKEN},
    quickstart::token,
};

#[test]
fn after_a_kill_of_the_first_start_the_next_one_works() {
    fn exists(folder: &Path, name: &str) {
        wait_until(|| folder.join(name).exists());
    }
    // The start is killed at once, when its file or log exists, when it listens, and when it has printed the key.
    let moments: [fn(&Path, &mut Running); 5] = [
        |_, _| (),
        |folder, _| exists(folder, "animal-store.db"),
        |folder, _| exists(folder, "animal-store.db-wal"),
        |_, running| _ = running.wait_for_event("listening"),
        |_, running| _ = running.wait_for_text("?status="),
    ];
    for wait in moments {
        let folder = TempDir::new().unwrap();
        let mut killed = Program::in_folder(folder.path())
            .args(&["--print-key"])
            .start();
        wait(folder.path(), &mut killed);
        killed.signal("KILL");
        let killed = killed.wait();
        assert_eq!(killed.code, None, "{killed:?}");

        let mut running = Program::in_folder(folder.path()).start();
        let address = running.address();
        let token = match killed.stderr.iter().find(|line| line.contains("?status=")) {
            Some(printed) => token(printed),
            None => {
                token_and_id(
                    &Program::in_folder(folder.path())
                        .args(&["keys", "create", "--label", "x"])
                        .run(),
                )
                .0
            }
        };
        wait_until(|| status(address, &token) == 200);
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
