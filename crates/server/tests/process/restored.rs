//! A backup that is used as a store: API keys that were revoked since then are valid again, and it says so.

use tempfile::TempDir;

use crate::{keys::token_and_id, pets::status, program::Program, store::Store};

const WARNING: &str = "this store is a backup: API keys that were revoked since then are valid again, revoke them \
                       once more";

/// Returns a backup that has a key which was revoked later, as a store, and the token.
fn restored() -> (Store, String) {
    let store = Store::sqlite();
    let create = ["keys", "create", "--create", "--label", "shop"];
    let (token, id) = token_and_id(&store.with_own_keys().args(&create).run());
    let folder = TempDir::new().expect("a folder");
    let backup = folder.path().join("animal-store.db");
    let backup = backup.to_str().expect("UTF-8");
    succeed(&store, &["backup", backup]);
    succeed(&store, &["keys", "revoke", &id]);
    (Store::Sqlite(folder), token)
}

fn succeed(store: &Store, args: &[&str]) {
    let exited = store.with_own_keys().args(args).run();
    assert_eq!(exited.code, Some(0), "{exited:?}");
}

#[test]
fn the_first_start_on_a_backup_warns_and_later_ones_do_not() {
    let (store, token) = restored();
    // Commands that read keep the mark.
    succeed(&store, &["keys", "list"]);
    succeed(&store, &["pets", "export"]);
    let mut running = store.with_own_keys().start();
    let event = running.wait_for_event(WARNING);
    assert_eq!(event["records"], 1);
    let time = event["time"].as_str().expect("a time");
    assert!(
        time.starts_with("20") && time.ends_with('Z') && time.len() == 20,
        "{time}"
    );
    assert_eq!(status(running.address(), &token), 200);
    running.terminate();
    let mut running = store.with_own_keys().start();
    running.address();
    let log = running.terminate().output();
    assert!(!log.contains(WARNING), "{log}");
}

#[test]
fn each_copy_from_a_backup_warns_unless_it_copies_no_keys() {
    let (store, token) = restored();
    let Store::Sqlite(folder) = &store else {
        unreachable!("it is a file")
    };
    let from = folder.path().join("animal-store.db");
    let from = from.to_str().expect("UTF-8");
    for (options, warns, expected) in [
        (&[][..], true, 200),
        (&[], true, 200),
        (&["--without-keys"], false, 401),
    ] {
        let target = Store::sqlite();
        let Store::Sqlite(folder) = &target else {
            unreachable!("it is a file")
        };
        let to = folder.path().join("animal-store.db");
        let copy = ["copy", "--from", from, "--to", to.to_str().expect("UTF-8")];
        let copied = Program::bare().args(&copy).args(options).run();
        assert_eq!(copied.code, Some(0), "{copied:?}");
        assert_eq!(copied.output().contains(WARNING), warns, "{copied:?}");
        let mut running = target.with_own_keys().start();
        assert_eq!(status(running.address(), &token), expected, "{options:?}");
    }
    // The backup still has its mark.
    store.with_own_keys().start().wait_for_event(WARNING);
}

#[test]
fn a_copy_without_keys_adds_pets_and_no_key() {
    let (store, _) = restored();
    let target = Store::sqlite();
    store.import("{\"name\":\"Rex\",\"categoryId\":1}");
    let files = Program::bare()
        .file("from.toml", &store.config("backend = \"sqlite\""))
        .file("to.toml", &target.config("backend = \"sqlite\""));
    let copy = [
        "copy",
        "--from",
        "from.toml",
        "--to",
        "to.toml",
        "--without-keys",
    ];
    let copied = files.args(&copy).run();
    let lines = &copied.stdout;
    assert_eq!(lines[0], "pets: 1, 1 of them added");
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("tokens of API keys: not copied")),
        "{lines:?}"
    );
    assert_eq!(target.pages(), store.pages());
    let listed = target
        .with_own_keys()
        .args(&["keys", "list", "--json"])
        .run();
    assert!(!listed.output().contains("shop"), "{listed:?}");
}
