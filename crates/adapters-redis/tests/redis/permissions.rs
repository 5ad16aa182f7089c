//! The fewest permissions of Redis with which everything works.

use std::time::Duration;

use animal_store_app::{
    ApiKeyId,
    ports::{AddedKey, ApiKeyStore, ApiKeyStoreError, NewToken},
    test_support::api_key,
};
use animal_store_test_servers::RedisServer;

use crate::{
    keys::{Keys, new_token, settings},
    uses::{Accepted, Failed, Refused, ask, comes_to, is_ready, soon_comes_to},
};

/// Of the program that serves requests.
const READER: [&str; 5] = ["+ping", "+client|tracking", "+exists", "+hmget", "+pttl"];
/// Of whoever issues, rotates and revokes keys.
const WRITER: [&str; 14] = [
    "+watch",
    "+multi",
    "+exec",
    "+time",
    "+exists",
    "+hget",
    "+hexists",
    "+hgetall",
    "+hmget",
    "+pttl",
    "+hset",
    "+hdel",
    "+del",
    "+pexpireat",
];

/// Without this one, ids of keys that have ended stay in the index, where they do no harm.
const TIDYING: &str = "+hdel";

/// As this user, who may do nothing but this with these names.
fn user(server: &RedisServer, name: &str, names: &str, permitted: &[&str]) -> Keys {
    server.command(&[&["ACL", "SETUSER", name, "reset", "on", ">secret", names], permitted].concat());
    Keys::at(&format!("redis://{name}:secret@localhost:{}", server.port()), settings("shop:"))
}

fn without<'a>(permissions: &[&'a str], left_out: &str) -> Vec<&'a str> {
    permissions.iter().copied().filter(|&permission| permission != left_out).collect()
}

fn everything(server: &RedisServer) -> Vec<String> {
    let names = server.command(&["--scan"]);
    let mut entries: Vec<_> = names.lines().map(|name| format!("{name} {}", server.command(&["DUMP", name]))).collect();
    entries.sort();
    entries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_needs_five_commands_on_its_own_names_to_read() {
    let server = RedisServer::start();
    let admin = Keys::at(&server.url(), settings("shop:"));
    let key = admin.add("key", "token").await;
    let directory = user(&server, "reader", "%R~shop:v1:*", &READER).directory().await;
    assert!(is_ready(&directory).await);
    comes_to(&directory, "token", Accepted).await;
    assert_eq!(ask(&directory, "invented").await, Refused);
    admin.revoke(&key).await;
    soon_comes_to(&directory, "token", Refused).await;
    server.command(&["FLUSHALL"]);
    assert_eq!(ask(&directory, "invented").await, Refused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_lacks_a_permission_fails() {
    let server = RedisServer::start();
    Keys::at(&server.url(), settings("shop:")).add("key", "token").await;
    for left_out in READER {
        let directory = user(&server, left_out, "%R~shop:v1:*", &without(&READER, left_out)).directory().await;
        assert!(!is_ready(&directory).await, "without {left_out}");
        for token in ["token", "invented"] {
            assert_eq!(ask(&directory, token).await, Failed, "{token} without {left_out}");
        }
    }
    for names in ["%W~shop:v1:*", "%R~shop:v1:index", "%R~shop:v1:token:*", "%R~store:v1:*"] {
        let directory = user(&server, "elsewhere", names, &READER).directory().await;
        assert!(!is_ready(&directory).await, "with {names}");
        for token in ["token", "invented"] {
            assert_eq!(ask(&directory, token).await, Failed, "{token} with {names}");
        }
    }
}

/// Everything that a store can do.
async fn use_everything(keys: &Keys) -> Result<(), ApiKeyStoreError> {
    let store = &keys.store;
    let ending = NewToken { lifetime: Some(Duration::from_millis(1)), ..new_token("ending") };
    assert_eq!(store.add(api_key("ending"), ending).await?, AddedKey::New);
    assert_eq!(store.add(api_key("key"), new_token("old")).await?, AddedKey::New);
    assert!(store.rotate(&ApiKeyId::new("key"), new_token("new"), Duration::from_hours(1)).await?.is_some());
    let limited = NewToken { lifetime: Some(Duration::from_hours(1)), ..new_token("limited") };
    assert_eq!(store.add(api_key("limited"), limited).await?, AddedKey::New);
    assert!(store.rotate(&ApiKeyId::new("limited"), new_token("next"), Duration::ZERO).await?.is_some());
    assert!(store.revoke(&ApiKeyId::new("limited")).await?.is_some());
    while store.list().await?.len() > 2 {}
    assert!(store.revoke(&ApiKeyId::new("key")).await?.is_some());
    store.list().await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_needs_fourteen_commands_on_its_own_names() {
    let server = RedisServer::start();
    use_everything(&user(&server, "writer", "~shop:v1:*", &WRITER)).await.expect("it has what it needs");
    assert_eq!(server.command(&["DBSIZE"]), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_may_not_tidy_up_does_all_the_rest() {
    let server = RedisServer::start();
    let keys = user(&server, "writer", "~shop:v1:*", &without(&WRITER, TIDYING));
    use_everything(&keys).await.expect("it has what it needs");
    assert_eq!(keys.store.list().await.expect("list"), []);
    assert_eq!(server.command(&["--scan"]), "shop:v1:index");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_lacks_another_permission_fails() {
    for left_out in without(&WRITER, TIDYING) {
        let server = RedisServer::start();
        let keys = user(&server, "writer", "~shop:v1:*", &without(&WRITER, left_out));
        let error = use_everything(&keys).await.expect_err(left_out);
        assert!(matches!(error, ApiKeyStoreError::Unavailable(_)), "{left_out}: {error:?}");
    }
}

/// Of one that was begun already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_for_which_a_permission_is_missing_is_not_made_in_part() {
    let server = RedisServer::start();
    let admin = Keys::at(&server.url(), settings("shop:"));
    let key = admin.add("key", "token").await;
    let before = everything(&server);
    for left_out in without(&WRITER, TIDYING) {
        let Keys { store, .. } = user(&server, "writer", "~shop:v1:*", &without(&WRITER, left_out));
        let ending = NewToken { lifetime: Some(Duration::from_hours(1)), ..new_token("new") };
        let added = store.add(api_key("new"), ending.clone()).await.map(drop);
        if added.is_ok() {
            admin.revoke(&api_key("new")).await;
        }
        let rotated = store.rotate(&key.id, ending, Duration::ZERO).await.map(drop);
        if rotated.is_ok() {
            admin.revoke(&key).await;
            admin.add("key", "token").await;
        }
        let revoked = store.revoke(&key.id).await.map(drop);
        if revoked.is_ok() {
            admin.add("key", "token").await;
        }
        for outcome in [added, rotated, revoked] {
            assert!(matches!(outcome, Ok(()) | Err(ApiKeyStoreError::Unavailable(_))), "{left_out}: {outcome:?}");
        }
        // But for the second in which it was made.
        assert_eq!(names(&everything(&server)), names(&before), "{left_out}");
        assert_eq!(admin.store.list().await.expect("list").len(), 1, "{left_out}");
    }
}

fn names(entries: &[String]) -> Vec<&str> {
    entries.iter().filter_map(|entry| entry.split(' ').next()).collect()
}
