//! Uses of API keys: they are written at the shutdown at the latest, and `animal-store keys list` shows them.

use animal_store_test_servers::{HttpClient, RedisServer, RedisSpace};
use serde_json::Value;

use crate::{
    keys::{keys, token_and_id},
    program::{Exited, Program},
};

/// Creates a key with these scopes, and returns its token and its id.
fn create(space: &RedisSpace, scopes: &str) -> (String, String) {
    token_and_id(&keys(space, &["create", "--label", "shop", "--scopes", scopes]).run())
}

/// Runs `keys list` as JSON with these arguments.
fn list(space: &RedisSpace, args: &[&str]) -> (Vec<Value>, Exited) {
    let exited = keys(space, &["list", "--json"]).args(args).run();
    assert_eq!(exited.code, Some(0), "{exited:?}");
    (serde_json::from_str(&exited.stdout.join("\n")).expect("a JSON array"), exited)
}

fn ids(space: &RedisSpace, args: &[&str]) -> Vec<Value> {
    list(space, args).0.into_iter().map(|entry| entry["id"].clone()).collect()
}

#[test]
fn the_last_uses_of_each_key_are_listed_and_select_keys() {
    let space = RedisSpace::new();
    let [(list_token, _), (get_token, getting), (_, unused)] =
        ["read", "write", "read"].map(|scopes| create(&space, scopes));
    assert!(list(&space, &[]).0.iter().all(|entry| entry["last_used"].is_null()));
    assert!(list(&space, &["--uses-deprecated"]).1.output().contains("no use of an API key was recorded yet"));

    let mut running = Program::with_redis(&space).start();
    let address = running.address();
    // A refused use of `getPet` counts as well.
    for (token, target, status) in
        [(&*list_token, "/v1/pets", 200), (&get_token, "/v1/pets/1", 403), ("invented", "/v1/pets", 401)]
    {
        HttpClient::new(address).with_token(token).get(target).assert_status(status);
    }
    running.terminate().assert_success();

    for entry in list(&space, &[]).0 {
        let used = [&entry["last_used"], &entry["last_used_get_pet"]].map(|time| time.as_str().is_some());
        let expected = [entry["id"] != *unused, entry["id"] == *getting];
        assert_eq!(used, expected, "{entry}");
        assert!(entry["last_used"].as_str().is_none_or(|time| time.ends_with(":00Z")), "{entry}");
    }
    assert_eq!(ids(&space, &["--uses-deprecated"]), [&*getting]);
    assert!(list(&space, &["--uses-deprecated"]).1.output().contains("earlier uses of API keys are unknown"));
    for token in space.names().iter().filter(|name| name.contains(":token:")) {
        space.command(&["HSET", token, "created", "0"]);
    }
    assert_eq!(ids(&space, &["--unused-for", "90d"]), [&*unused]);
}

#[test]
fn without_the_permission_to_read_uses_the_list_contains_the_rest() {
    let server = RedisServer::start();
    let permissions = ["~animal-store:v1:*", "+@all", "-zrange"];
    server.command(&[&["ACL", "SETUSER", "writer", "on", ">secret"], &permissions[..]].concat());
    let keys = |args: &[&str]| {
        let url = format!("redis://writer:secret@localhost:{}", server.port());
        Program::with_redis_url(&url).args(&["keys"]).args(args).run()
    };
    token_and_id(&keys(&["create", "--label", "shop"]));

    let exited = keys(&["list"]);
    assert_eq!((exited.code, exited.stdout.len()), (Some(0), 2), "{exited:?}");
    assert!(exited.stdout[1].ends_with("  unknown    unknown"), "{exited:?}");
    assert!(exited.stderr.join("\n").contains("the uses of the API keys cannot be read"), "{exited:?}");
    let exited = keys(&["list", "--uses-deprecated"]);
    assert_eq!((exited.code, exited.stdout.len()), (Some(1), 0), "{exited:?}");
}
