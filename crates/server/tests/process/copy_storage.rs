//! `animal-store copy`: what is copied, and what is refused.

use animal_store_test_servers::{HttpClient, RedisSpace};

use crate::{
    keys::token_and_id,
    pets::{create_request, is_replay, keyed_create_request},
    program::{Exited, LONG_REDIS_TIMEOUT, Program, TOKEN},
    store::{Store, odd_pets, pages},
};

/// API keys that are part of the configuration.
const MEMORY: &str = "backend = \"memory\"";

/// Copies between two stores, with these keys of the configuration files.
pub(crate) fn copy(from: (&Store, &str), to: (&Store, &str)) -> Program {
    Program::bare().file("from.toml", &from.0.config(from.1)).file("to.toml", &to.0.config(to.1)).args(&[
        "copy",
        "--from",
        "from.toml",
        "--to",
        "to.toml",
    ])
}

#[track_caller]
fn assert_refused(exited: &Exited, code: i32, reason: &str) {
    assert_eq!((exited.code, &exited.stdout), (Some(code), &vec![]), "{exited:?}");
    assert!(exited.output().contains(reason), "{reason}: {exited:?}");
}

#[test]
fn a_copy_there_and_back_has_the_same_pages_and_replays_the_same_keys() {
    let [sqlite, postgres] = Store::each();
    sqlite.import(&odd_pets(2500), &["--keep-ids"]);
    let mut running = sqlite.program().start();
    let created = keyed_create_request(running.address(), TOKEN, "key-1", "Rex").send();
    created.assert_status(201);
    let pages = pages(&mut running);
    assert_eq!(running.terminate().code, Some(0));

    let back = Store::sqlite();
    for (from, to) in [(&sqlite, &postgres), (&postgres, &back)] {
        let exited = copy((from, MEMORY), (to, MEMORY)).run();
        assert_eq!(exited.code, Some(0), "{exited:?}");
        assert_eq!(exited.stdout[..2], ["pets: 2501, 2501 of them added", "idempotency keys: 1"]);

        let mut running = to.program().start();
        assert_eq!(self::pages(&mut running), pages);
        let address = running.address();
        let replay = keyed_create_request(address, TOKEN, "key-1", "Rex").send();
        assert!(is_replay(&replay), "{replay:?}");
        assert_eq!(replay.text(), created.text());
        assert_eq!(keyed_create_request(address, TOKEN, "key-1", "Tom").send().status, 422);
        assert_eq!(running.terminate().code, Some(0));
    }

    // The next create has a greater id.
    let id = create_request(back.program().start().address(), TOKEN, "next").send().json()["id"].as_i64();
    assert!(id > created.json()["id"].as_i64(), "{id:?}");
}

#[test]
fn a_repeated_copy_adds_what_is_new() {
    let [from, to] = Store::each();
    for _ in 0..2 {
        from.import(&odd_pets(100), &[]);
        assert_eq!(copy((&from, MEMORY), (&to, MEMORY)).run().code, Some(0));
        assert_eq!(to.pages(), from.pages());
    }
}

#[test]
fn a_store_with_other_pets_is_not_changed() {
    for (pets, id) in [(3, 1), (3, 2), (3, 1000)] {
        let [from, to] = Store::each();
        from.import(&odd_pets(pets), &["--keep-ids"]);
        to.import(&format!("{{\"id\":{id},\"name\":\"Other\",\"categoryId\":1}}\n"), &["--keep-ids"]);

        let exited = copy((&from, MEMORY), (&to, MEMORY)).run();

        assert_refused(&exited, 1, "other pet");
        assert_eq!(to.names(), ["Other"]);
    }
}

#[test]
fn a_store_is_not_copied_onto_itself() {
    for store in Store::each() {
        store.import(&odd_pets(3), &[]);
        assert_refused(&copy((&store, MEMORY), (&store, MEMORY)).run(), 2, "same");
    }
}

#[test]
fn options_before_copy_are_refused() {
    for args in [&["--memory"][..], &["--config", "x.toml"], &["--set", "a=b"], &["--listen", "127.0.0.1:0"]] {
        let exited = Program::bare().args(args).args(&["copy", "--from", "a.toml", "--to", "b.toml"]).run();
        assert_refused(&exited, 2, "before copy");
    }
}

#[test]
fn a_copy_needs_two_stores_that_keep_their_pets() {
    let store = Store::sqlite();
    store.import(&odd_pets(3), &[]);
    for files in [["memory.toml", "store.toml"], ["store.toml", "memory.toml"]] {
        let program = Program::bare()
            .file("memory.toml", "[storage]\nbackend = \"memory\"\n")
            .file("store.toml", &store.config(MEMORY))
            .args(&["copy", "--from", files[0], "--to", files[1]]);
        assert_refused(&program.run(), 2, "memory.toml");
    }
    let missing = copy((&store, MEMORY), (&Store::sqlite(), MEMORY)).args(&["--to", "missing.toml"]);
    assert_eq!(missing.run().code, Some(2));
}

#[test]
fn the_environment_does_not_change_a_copy() {
    let [from, to] = Store::each();
    from.import(&odd_pets(3), &[]);
    let exited = copy((&from, MEMORY), (&to, MEMORY)).env("ANIMAL_STORE_STORAGE__BACKEND", "memory").run();
    assert_eq!(exited.code, Some(0), "{exited:?}");
    assert_eq!(to.pages(), from.pages());
}

#[test]
fn api_keys_move_to_redis_and_back() {
    let [sqlite, postgres] = Store::each();
    let create = sqlite.program().env("ANIMAL_STORE_KEYS__BACKEND", "sqlite");
    let (token, _) = token_and_id(&create.args(&["keys", "create", "--label", "web shop", "--scopes", "read"]).run());
    let space = RedisSpace::new();
    let redis = format!(
        "backend = \"redis\"\nredis.url = \"{}\"\nredis.prefix = \"{}\"\nredis.timeout = \"{LONG_REDIS_TIMEOUT}\"",
        space.url(),
        space.prefix()
    );
    let file = "backend = \"sqlite\"";

    let exited = copy((&sqlite, file), (&postgres, &redis)).run();
    assert_eq!(exited.code, Some(0), "{exited:?}");
    assert!(exited.stdout.contains(&"tokens of API keys: 1 added".to_owned()), "{exited:?}");
    let back = Store::sqlite();
    assert_eq!(copy((&postgres, &redis), (&back, file)).run().code, Some(0));

    let in_redis = postgres
        .program()
        .env("ANIMAL_STORE_KEYS__BACKEND", "redis")
        .env("ANIMAL_STORE_KEYS__REDIS__URL", space.url())
        .env("ANIMAL_STORE_KEYS__REDIS__TIMEOUT", LONG_REDIS_TIMEOUT)
        .env("ANIMAL_STORE_KEYS__REDIS__PREFIX", space.prefix());
    for program in [in_redis, back.program().env("ANIMAL_STORE_KEYS__BACKEND", "sqlite")] {
        let mut running = program.start();
        let client = HttpClient::new(running.address()).with_token(&token);
        assert_eq!(client.get("/v1/pets").status, 200);
        let create = client.request("POST", "/v1/pets").json("{\"name\":\"Rex\",\"categoryId\":1}");
        assert_eq!(create.send().status, 403);
    }
}

#[test]
fn no_output_has_the_password_of_a_url() {
    let store = Store::sqlite();
    store.import(&odd_pets(3), &[]);
    let url = "backend = \"postgres\"\npostgres.url = \"postgres://store:top-secret@127.0.0.1:1/store\"";
    let config = format!("[storage]\n{url}\n[keys]\n{MEMORY}\n[log]\nfilter = \"debug\"\n");
    for files in [["file.toml", "url.toml"], ["url.toml", "file.toml"]] {
        let program = Program::bare().file("file.toml", &store.config(MEMORY)).file("url.toml", &config);
        let exited = program.args(&["copy", "--from", files[0], "--to", files[1]]).run();
        assert_eq!(exited.code, Some(1), "{exited:?}");
        assert!(!exited.output().contains("top-secret"), "{exited:?}");
    }
}
