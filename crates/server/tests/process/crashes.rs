//! Kills: of the first start, and of an instance that creates a pet. `adapters-sqlite/tests/sqlite/kills.rs` has those
//! of two processes that create pets in one file with the same keys.

use crate::{postgres::Gate, prelude::*, quickstart::token};

#[test]
fn after_a_kill_of_the_first_start_the_next_one_works() {
    fn exists(store: &Store, suffix: &str) {
        let path = format!("{}{suffix}", store.path());
        wait_until(|| fs::exists(&path).expect("a folder"));
    }
    // The start is killed at once, when its file or log exists, when it listens, and when it has printed the key.
    let moments: [fn(&Store, &mut Running); 5] = [
        |_, _| (),
        |store, _| exists(store, ""),
        |store, _| exists(store, "-wal"),
        |_, running| _ = running.wait_for_event("listening"),
        |_, running| _ = running.wait_for_text("?status="),
    ];
    for wait in moments {
        let store = Store::sqlite();
        let program = || Program::in_folder(store.folder());
        let mut killed = program().args("--print-key").start();
        wait(&store, &mut killed);
        killed.signal("KILL");
        let killed = killed.wait();
        assert_eq!(killed.code, None, "{killed:?}");

        let mut running = program().start();
        let address = running.address();
        let mut lines = killed.stderr.iter();
        let printed = lines.find(|line| line.contains("?status="));
        let token = printed.map_or_else(|| store.create_key().token, |line| token(line));
        wait_until(|| status(address, &token) == 200);
    }
}

#[test]
fn a_retry_replays_a_create_whose_response_a_crash_cut_off() {
    let database = PgDatabase::new();
    let mut instances = [(); 2].map(|()| Program::with_postgres(database.url()).start());
    let [killed, other] = instances.each_mut().map(|running| running.address());
    let request = |address| keyed_create_request(address, "order-1", "Rex");
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
