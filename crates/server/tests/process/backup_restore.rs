//! `animal-store backup` and `restore`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use animal_store_test_servers::HttpClient;
use tempfile::TempDir;

use crate::{
    keys::token_and_id,
    pets::{create_request, is_replay, keyed_create_request},
    program::TOKEN,
    store::{Store, odd_pets, pause},
};

/// A folder for backups.
struct Backups(TempDir);

impl Backups {
    fn new() -> Self {
        Self(TempDir::new().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes a backup. Returns its path as text.
    #[track_caller]
    fn make(&self, store: &Store, name: &str, args: &[&str]) -> String {
        let path = self.path(name).to_str().expect("UTF-8").to_owned();
        store.succeed(&[&["backup", &path], args].concat());
        path
    }

    fn names(&self) -> usize {
        fs::read_dir(self.0.path()).expect("the folder").count()
    }
}

fn mode(path: &str) -> u32 {
    fs::metadata(path).expect("the file").permissions().mode() & 0o777
}

#[test]
fn a_backup_is_restored_into_each_backend() {
    for from in Store::each() {
        from.import(&odd_pets(2500), &["--keep-ids"]);
        let mut running = from.program().start();
        let created = keyed_create_request(running.address(), TOKEN, "key-1", "Rex").send();
        created.assert_status(201);
        let backups = Backups::new();
        let file = backups.make(&from, "pets.backup", &[]);
        drop(running);
        assert_eq!((mode(&file), backups.names()), (0o600, 1));

        for to in Store::each() {
            let result = to.succeed(&["restore", &file, "--verify"]);
            assert!(result.starts_with("pets: 2501, 2501 of them added\n") && result.contains("verified"), "{result}");
            assert_eq!(to.pages(), from.pages());
            let mut running = to.program().start();
            let address = running.address();
            let replay = keyed_create_request(address, TOKEN, "key-1", "Rex").send();
            assert!(is_replay(&replay) && replay.text() == created.text(), "{replay:?}");
            let next = create_request(address, TOKEN, "next").send().json()["id"].as_i64();
            assert!(next > created.json()["id"].as_i64(), "{next:?}");
        }
    }
}

#[test]
fn a_snapshot_of_sqlite_is_restored_or_put_in_place() {
    let from = Store::sqlite();
    from.import(&odd_pets(300), &["--keep-ids"]);
    let running = from.program().start();
    let backups = Backups::new();
    let file = backups.make(&from, "snapshot.db", &["--format", "sqlite"]);
    drop(running);
    assert_eq!((mode(&file), backups.names()), (0o600, 1));

    for to in Store::each() {
        to.succeed(&["restore", &file, "--verify"]);
        assert_eq!(to.pages(), from.pages());
    }
    assert_eq!(backups.names(), 1, "the log of the snapshot is left");

    let folder = TempDir::new().expect("a folder");
    fs::copy(&file, folder.path().join("animal-store.db")).expect("a copy");
    assert_eq!(Store::Sqlite(folder).pages(), from.pages());
    assert_eq!(Store::postgres().run(&["backup", "x.db", "--format", "sqlite"]).code, Some(2));
}

#[test]
fn api_keys_are_in_the_backup_as_digests() {
    let from = Store::sqlite();
    let with_keys = |store: &Store| store.program().env("ANIMAL_STORE_KEYS__BACKEND", "sqlite");
    let (token, _) = token_and_id(&with_keys(&from).args(&["keys", "create", "--label", "shop"]).run());
    from.import(&odd_pets(3), &[]);
    for (name, format) in [("backup", "ndjson"), ("backup.db", "sqlite")] {
        let backups = Backups::new();
        let file = backups.path(name).to_str().expect("UTF-8").to_owned();
        assert_eq!(with_keys(&from).args(&["backup", &file, "--format", format]).run().code, Some(0));
        let bytes = fs::read(&file).expect("the backup");
        assert!(!bytes.windows(token.len()).any(|part| part == token.as_bytes()), "{format}: the token is in the file");

        let to = Store::sqlite();
        let exited = with_keys(&to).args(&["restore", &file]).run();
        assert_eq!(exited.code, Some(0), "{exited:?}");
        let mut running = with_keys(&to).start();
        assert_eq!(HttpClient::new(running.address()).with_token(&token).get("/v1/pets").status, 200, "{format}");
    }
}

#[test]
fn an_existing_file_is_not_replaced_by_a_backup() {
    let store = Store::sqlite();
    store.import(&odd_pets(3), &[]);
    let backups = Backups::new();
    for format in ["ndjson", "sqlite"] {
        let file = backups.path("precious");
        fs::write(&file, "precious").expect("a file");
        let exited = store.run(&["backup", file.to_str().expect("UTF-8"), "--format", format]);
        assert_eq!(exited.code, Some(1), "{exited:?}");
        assert_eq!(fs::read_to_string(&file).expect("the file"), "precious");
    }
}

#[test]
fn a_store_with_other_pets_is_not_restored_over() {
    let [from, to] = Store::each();
    from.import(&odd_pets(3), &[]);
    let backups = Backups::new();
    let file = backups.make(&from, "backup", &[]);
    to.import("{\"name\":\"Other\",\"categoryId\":1}\n", &[]);
    let exited = to.run(&["restore", &file]);
    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert_eq!(to.names(), ["Other"]);
}

#[test]
fn a_file_that_is_not_a_whole_backup_is_not_restored() {
    let store = Store::sqlite();
    store.import(&odd_pets(300), &[]);
    let backups = Backups::new();
    let text = fs::read_to_string(backups.make(&store, "good", &[])).expect("the backup");
    let lines: Vec<_> = text.lines().collect();
    let export = store.succeed(&["pets", "export"]);
    for (name, text) in [
        ("cut", text[..text.len() / 2].to_owned()),
        ("without an end", format!("{}\n", lines[..lines.len() - 1].join("\n"))),
        ("without a pet", format!("{}\n{}\n", lines[..10].join("\n"), lines[11..].join("\n"))),
        ("changed", text.replacen("Rex", "Max", 1)),
        ("an export", export),
        ("no backup", "hello\n".to_owned()),
        ("empty", String::new()),
    ] {
        fs::write(backups.path(name), text).expect("a file");
        let path = backups.path(name);
        for args in [&[][..], &["--dry-run"], &["--verify"]] {
            let to = Store::sqlite();
            let exited = to.run(&[&["restore", path.to_str().expect("UTF-8")], args].concat());
            assert_eq!(exited.code, Some(1), "{name}: {exited:?}");
        }
    }
}

#[test]
fn a_dry_run_checks_the_file_and_restores_nothing() {
    let [from, to] = Store::each();
    from.import(&odd_pets(30), &[]);
    let file = Backups::new();
    let file = (file.make(&from, "backup", &[]), file);
    let result = to.succeed(&["restore", &file.0, "--dry-run"]);
    assert!(result.starts_with("pets: 30\n"), "{result}");
    let unused = Store::sqlite();
    unused.succeed(&["restore", &file.0, "--dry-run"]);
    assert_eq!(unused.run(&["restore", "missing"]).code, Some(1));
    assert!(!unused.has_file());
    assert_eq!(to.names(), Vec::<String>::new());
}

#[test]
fn a_restore_that_is_killed_is_repeated() {
    let from = Store::sqlite();
    from.import(&odd_pets(12_000), &["--keep-ids"]);
    let backups = Backups::new();
    let file = backups.make(&from, "backup", &[]);
    for to in Store::each() {
        for time in 1..=5 {
            let mut running = to.program().args(&["restore", &file]).start();
            pause(60 * time);
            running.kill();
        }
        to.succeed(&["restore", &file, "--verify"]);
        assert_eq!(to.pages(), from.pages());
    }
}

#[test]
fn an_interrupted_backup_leaves_no_file_that_looks_complete() {
    let store = Store::sqlite();
    store.import(&odd_pets(20_000), &[]);
    for format in ["ndjson", "sqlite"] {
        for (milliseconds, signal) in [(10, "INT"), (40, "KILL"), (80, "INT")] {
            let backups = Backups::new();
            let path = backups.path("backup");
            let args = ["backup", path.to_str().expect("UTF-8"), "--format", format];
            let running = store.program().args(&args).start();
            pause(milliseconds);
            running.signal(signal);
            running.wait();
            if path.exists() {
                assert!(is_restorable(&path), "{format}");
            }
        }
    }
}

fn is_restorable(path: &Path) -> bool {
    Store::sqlite().run(&["restore", path.to_str().expect("UTF-8")]).code == Some(0)
}
