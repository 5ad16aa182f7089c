//! The program with its default file, or with pets in memory: starts that fail, what the log says, and the retention.

use crate::prelude::*;

#[test]
fn the_log_says_where_pets_and_keys_are_kept() {
    let mut file = Program::with_file().start();
    let event = file.wait_for_event("storage selected");
    let path = event["pets"].as_str().expect("a text");
    assert!(path.starts_with("sqlite /") && path.ends_with("/animal-store.db"));
    assert_eq!(event["api_keys"], path);

    let mut running = Program::with_key().start();
    let event = running.wait_for_event("storage selected");
    assert_eq!([&event["pets"], &event["api_keys"]], ["memory", "memory"]);
    running.wait_for_warning("memory");
}

#[test]
fn a_file_that_cannot_be_used_is_one_line() {
    let folder = new_folder();
    let linked = folder.path().join("linked.db");
    fs::write(&linked, "").expect("written");
    fs::hard_link(&linked, folder.path().join("other.db")).expect("linked");
    // Not even root can create a file in /sys.
    for (path, code) in [("/sys/animal-store.db", 1), (linked.to_str().unwrap(), 2)] {
        for line in ["serve", "keys create --create --label x"] {
            let program = Program::with_file().set("storage.sqlite.path", path);
            let exited = program.args(line).run();
            exited.assert_error(code, &["animal-store: ", path]);
        }
    }
}

#[test]
fn other_machines_cannot_connect_before_there_is_a_key() {
    let store = Store::sqlite();
    let program = || store.with_own_keys().args("--listen 0.0.0.0:0");
    let advice = "keys create --label NAME";
    let refused = program().run();
    refused.assert_error(1, &[&store.path(), "has no API key", advice]);

    let key = store.create_key();
    let mut running = program().start();
    let local = ([127, 0, 0, 1], running.address().port()).into();
    assert_eq!(status(local, &key.token), 200);
}

#[test]
fn an_idempotency_key_is_free_after_the_configured_retention() {
    let program = Program::with_key().set("storage.idempotency_retention", "1s");
    let mut running = program.start();
    let address = running.address();
    let create = || keyed_create_request(address, "order-1", "Rex").send();
    create().assert_status(201);
    wait_until(|| !is_replay(create().assert_status(201)));
}
