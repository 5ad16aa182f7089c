//! Kills of the first start. `adapters-sqlite/tests/sqlite/kills.rs` has those of processes that create pets, and
//! `adapters-postgres/tests/postgres/outcome.rs` the retries of creates whose connection was cut.

use crate::{prelude::*, quickstart::token};

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
        let program = || store.unconfigured();
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
