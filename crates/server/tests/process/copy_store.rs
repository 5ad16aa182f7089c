//! `animal-store copy` and `animal-store backup`: what is copied, and what is refused.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use animal_store_test_servers::RedisSpace;
use tempfile::TempDir;

use crate::{
    keys::token_and_id,
    pets::{create_request, is_replay, keyed_create_request, pages, status},
    program::{Program, TOKEN},
    store::{Store, odd_pets},
};

/// API keys that are part of the configuration.
const MEMORY: &str = "backend = \"memory\"";
const FILE: &str = "backend = \"sqlite\"";

/// Copies between two stores, with these keys of the configuration files.
fn copy(from: (&Store, &str), to: (&Store, &str)) -> Program {
    Program::bare().file("from.toml", &from.0.config(from.1)).file("to.toml", &to.0.config(to.1)).args(&[
        "copy",
        "--from",
        "from.toml",
        "--to",
        "to.toml",
    ])
}

/// Returns a store of each kind, the first one with pets and gaps between their ids.
fn filled(pets: usize) -> [Store; 2] {
    let stores = Store::each();
    stores[0].import(&odd_pets(pets));
    stores[0].execute("DELETE FROM pets WHERE id % 5 = 2");
    stores
}

#[test]
fn a_copy_there_and_back_has_the_same_pages_and_replays_the_same_keys() {
    let [sqlite, postgres] = filled(2500);
    let mut running = sqlite.program().start();
    let created = keyed_create_request(running.address(), TOKEN, "key-1", "Rex").send();
    created.assert_status(201);
    let pages = pages(running.address(), TOKEN);
    assert_eq!(running.terminate().code, Some(0));

    let back = Store::sqlite();
    for (from, to) in [(&sqlite, &postgres), (&postgres, &back)] {
        let exited = copy((from, MEMORY), (to, MEMORY)).run();
        exited.assert_success();
        assert_eq!(exited.stdout[0], "pets: 2001, 2001 of them added");

        let mut running = to.program().start();
        assert_eq!(self::pages(running.address(), TOKEN), pages);
        let replay = keyed_create_request(running.address(), TOKEN, "key-1", "Rex").send();
        assert!(is_replay(&replay) && replay.text() == created.text(), "{replay:?}");
        assert_eq!(running.terminate().code, Some(0));
    }
    let id = create_request(back.program().start().address(), TOKEN, "next").send().json()["id"].as_i64();
    assert!(id > created.json()["id"].as_i64(), "the next create has a greater id: {id:?}");
}

#[test]
fn a_store_with_other_pets_is_not_changed() {
    let [from, to] = filled(3);
    to.import("{\"name\":\"Other\",\"categoryId\":1}\n");
    copy((&from, MEMORY), (&to, MEMORY)).run().assert_refused(1, &["other pet"]);
    assert_eq!(to.names(), ["Other"]);
}

#[test]
fn stores_that_cannot_be_copied_are_refused() {
    for store in Store::each() {
        copy((&store, MEMORY), (&store, MEMORY)).run().assert_refused(2, &["same store"]);
    }
    for args in [&["--memory"][..], &["--config", "x.toml"], &["--set", "a=b"], &["--listen", "127.0.0.1:0"]] {
        let copy = ["copy", "--from", "a.toml", "--to", "b.toml"];
        for args in [[args, &copy].concat(), [&copy, args].concat()] {
            let exited = Program::bare().args(&args).run();
            exited.assert_refused(2, &["no option selects the stores of copy"]);
        }
    }
    let [store, _] = filled(3);
    for files in [["memory.toml", "store.toml"], ["store.toml", "memory.toml"]] {
        let program = Program::bare()
            .file("memory.toml", "[storage]\nbackend = \"memory\"\n")
            .file("store.toml", &store.config(MEMORY))
            .args(&["copy", "--from", files[0], "--to", files[1]]);
        program.run().assert_refused(2, &["storage.backend is memory"]);
    }
    let missing = Program::bare().args(&["copy", "--from", "missing.db", "--to", "new.db"]).run();
    missing.assert_refused(1, &["missing.db: the file does not exist"]);
}

#[test]
fn the_environment_does_not_change_a_copy() {
    let [from, to] = filled(3);
    let exited = copy((&from, MEMORY), (&to, MEMORY)).env("ANIMAL_STORE_STORAGE__BACKEND", "memory").run();
    exited.assert_success();
    assert_eq!(to.pages(), from.pages());
}

#[test]
fn api_keys_move_to_redis_and_back() {
    let [sqlite, postgres] = Store::each();
    let create = sqlite.program().env("ANIMAL_STORE_KEYS__BACKEND", "sqlite").args(&["keys", "create", "--create"]);
    let (token, id) = token_and_id(&create.args(&["--label", "web shop", "--scopes", "read"]).run());
    let space = RedisSpace::new();
    let redis = format!("backend = \"redis\"\nredis.url = \"{}\"\nredis.prefix = \"{}\"", space.url(), space.prefix());
    let exited = copy((&sqlite, FILE), (&postgres, &redis)).run();
    exited.assert_success();
    assert!(exited.stdout.contains(&"tokens of API keys: 1 added".to_owned()), "{exited:?}");
    let back = Store::sqlite();
    copy((&postgres, &redis), (&back, FILE)).run().assert_success();

    assert_eq!(status(back.program().env("ANIMAL_STORE_KEYS__BACKEND", "sqlite").start().address(), &token), 200);

    // A copy is repeated after a revocation in the source.
    let keys = |args: &[&str]| sqlite.program().env("ANIMAL_STORE_KEYS__BACKEND", "sqlite").args(args).run();
    assert_eq!(keys(&["keys", "revoke", &id]).code, Some(0));
    let exited = copy((&sqlite, FILE), (&postgres, &redis)).run();
    exited.assert_success();
    assert!(exited.stdout.last().expect("a line").contains(&id), "the target still accepts it: {exited:?}");
}

/// Makes a backup beside a running service.
#[track_caller]
fn back_up(store: &Store, keys: &str, path: &Path) {
    let program = store.program().env("ANIMAL_STORE_KEYS__BACKEND", keys);
    let exited = program.args(&["backup", path.to_str().expect("UTF-8")]).run();
    exited.assert_success();
}

#[test]
fn a_backup_of_each_backend_starts_as_a_store_and_is_copied_back() {
    for (from, keys) in Store::each().into_iter().zip(["sqlite", "memory"]) {
        from.import(&odd_pets(2500));
        let mut running = from.program().start();
        let created = keyed_create_request(running.address(), TOKEN, "key-1", "Rex").send();
        created.assert_status(201);
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("animal-store.db");
        back_up(&from, keys, &path);
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "one file");

        let to = Store::postgres();
        let config = to.config(MEMORY);
        let args = ["copy", "--from", path.to_str().expect("UTF-8"), "--to", "to.toml"];
        Program::bare().file("to.toml", &config).args(&args).run().assert_success();
        assert_eq!(to.pages(), from.pages());

        let restored = Store::Sqlite(folder);
        let mut running = restored.program().start();
        assert_eq!(pages(running.address(), TOKEN), from.pages());
        let replay = keyed_create_request(running.address(), TOKEN, "key-1", "Rex").send();
        assert!(is_replay(&replay) && replay.text() == created.text(), "{replay:?}");
    }
}

#[test]
fn a_backup_has_the_digests_of_api_keys_and_not_their_tokens_and_replaces_no_file() {
    let from = Store::sqlite();
    let with_keys = |store: &Store| store.program().env("ANIMAL_STORE_KEYS__BACKEND", "sqlite");
    let (token, _) = token_and_id(&with_keys(&from).args(&["keys", "create", "--create", "--label", "shop"]).run());
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("animal-store.db");
    back_up(&from, "sqlite", &path);
    let bytes = fs::read(&path).expect("the backup");
    assert!(!bytes.windows(token.len()).any(|part| part == token.as_bytes()), "the token is in the file");
    from.run(&["backup", path.to_str().expect("UTF-8")]).assert_refused(1, &["exists"]);
    assert!(fs::read(&path).expect("the backup") == bytes);
    let restored = Store::Sqlite(folder);
    assert_eq!(status(with_keys(&restored).start().address(), &token), 200);
}
