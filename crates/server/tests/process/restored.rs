//! A backup that is used as a store: API keys that were revoked since then are valid again, and it says so.

use crate::prelude::*;

const WARNING: &str = "this store is a backup: API keys that were revoked since then are valid again, revoke them \
                       once more";

/// Returns a backup that has a pet and a key which was revoked later, as a store, and the token.
fn restored() -> (Store, String) {
    let store = Store::sqlite();
    store.import(&odd_pets(1));
    let NewKey { token, id } = store.create_key();
    let backup = store.backup();
    store.keys(&format!("revoke {id}")).assert_code(0);
    (backup, token)
}

#[test]
fn the_first_start_on_a_backup_warns_and_later_ones_do_not() {
    let (store, token) = restored();
    // Commands that read keep the mark.
    for line in ["keys list", "pets export"] {
        store.with_own_keys().args(line).succeed();
    }
    let mut running = store.with_own_keys().start();
    let event = running.wait_for_event(WARNING);
    assert_eq!(event["records"], 1);
    let time = event["time"].as_str().expect("a time");
    assert!(time.ends_with('Z') && time.len() == 20, "{time}");
    assert_eq!(status(running.address(), &token), 200);
    running.terminate();
    let mut running = store.with_own_keys().start();
    running.address();
    running.terminate().assert_lacks(WARNING);
}

#[test]
fn each_copy_from_a_backup_has_its_pets_and_warns_unless_it_copies_no_keys() {
    let (store, token) = restored();
    for (option, warns, expected) in [("", true, 200), ("--without-keys", false, 401)] {
        let target = Store::sqlite();
        let copy = Program::bare().args("copy --from").arg(store.path());
        let copy = copy.arg("--to").arg(target.path());
        let copied = copy.args(option).succeed();
        copied.assert_has("pets: 1, 1 of them added");
        if warns {
            copied.assert_has(WARNING);
        } else {
            copied.assert_lacks(WARNING);
            copied.assert_has("tokens of API keys: not copied");
        }
        assert_eq!(target.pages(), store.pages());
        let mut running = target.with_own_keys().start();
        assert_eq!(status(running.address(), &token), expected, "{option}");
    }
    // The backup still has its mark.
    store.with_own_keys().start().wait_for_event(WARNING);
}
