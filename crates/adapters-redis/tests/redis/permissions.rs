//! The minimal permissions of the Redis users.

use std::time::{Duration, SystemTime};

use animal_store_app::{
    ApiKeyId,
    ports::{AddedKey, ApiKeySource, ApiKeyStore, ApiKeyStoreError, ApiKeyTarget, ApiKeyUse, ApiKeyUses, NewToken},
    test_support::api_key,
};
use animal_store_test_servers::RedisServer;
use prometheus_client::registry::Registry;

use crate::{
    requests::{Accepted, Failed, Refused, becomes, changes_to, is_ready, use_token},
    setup::{Keys, long_timeouts, metric, new_token},
};

/// Permissions of the user for lookups.
pub(crate) const READER: &str = "+ping +client|tracking +exists +hmget +pttl";
/// Further permissions of this user, for the record of uses. Without them, nothing else fails.
const USES: &str = "~shop:v1:uses:* +zadd";
/// Permissions of the user for the administration.
const WRITER: &str = "+watch +multi +exec +time +exists +hget +hexists +hgetall +hmget +pttl +hset +hdel +del \
     +pexpireat +zrange +zrem +pexpiretime +eval";

/// The permission to remove the uses of keys that do not exist. Without it these stay there, which is harmless.
const CLEANUP: &str = "+zrem";

/// Creates a user that has only these permissions on these names.
pub(crate) fn user(server: &RedisServer, name: &str, names: &str, permissions: &str) -> Keys {
    let permissions: Vec<_> = permissions.split(' ').collect();
    server.command(&[&["ACL", "SETUSER", name, "reset", "on", ">secret", names], &permissions[..]].concat());
    Keys::at(&format!("redis://{name}:secret@localhost:{}", server.port()), long_timeouts())
}

/// Returns each permission with the list of all others.
fn each_left_out(permissions: &'static str) -> impl Iterator<Item = (&'static str, String)> {
    permissions.split(' ').map(|left_out| (left_out, without(permissions, left_out)))
}

pub(crate) fn without(permissions: &str, left_out: &str) -> String {
    permissions.split(' ').filter(|&permission| permission != left_out).collect::<Vec<_>>().join(" ")
}

pub(crate) fn everything(server: &RedisServer) -> Vec<String> {
    let names = server.command(&["--scan"]);
    let mut entries: Vec<_> = names.lines().map(|name| format!("{name} {}", server.command(&["DUMP", name]))).collect();
    entries.sort();
    entries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_needs_five_permissions_on_its_own_names() {
    let server = RedisServer::start();
    let admin = Keys::at(&server.url(), long_timeouts());
    let key = admin.add("key", "token").await;
    let directory = user(&server, "reader", "%R~shop:v1:*", READER).directory().await;
    assert!(is_ready(&directory).await);
    becomes(&directory, "token", Accepted).await;
    assert_eq!(use_token(&directory, "invented").await, Refused);
    admin.revoke(&key).await;
    changes_to(&directory, "token", Refused).await;
    server.command(&["FLUSHALL"]);
    assert_eq!(use_token(&directory, "invented").await, Refused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_lacks_a_permission_fails() {
    let server = RedisServer::start();
    Keys::at(&server.url(), long_timeouts()).add("key", "token").await;
    for (left_out, others) in each_left_out(READER) {
        let directory = user(&server, left_out, "%R~shop:v1:*", &others).directory().await;
        assert!(!is_ready(&directory).await, "without {left_out}");
        for token in ["token", "invented"] {
            assert_eq!(use_token(&directory, token).await, Failed, "{token} without {left_out}");
        }
    }
    for names in ["%W~shop:v1:*", "%R~shop:v1:index", "%R~shop:v1:token:*", "%R~store:v1:*"] {
        let directory = user(&server, "elsewhere", names, READER).directory().await;
        assert!(!is_ready(&directory).await, "with {names}");
        for token in ["token", "invented"] {
            assert_eq!(use_token(&directory, token).await, Failed, "{token} with {names}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_connection_has_a_name_without_a_permission_for_it() {
    let server = RedisServer::start();
    let _directory = user(&server, "reader", "%R~shop:v1:*", READER).directory().await;
    let clients = server.command(&["CLIENT", "LIST"]);
    let clients: Vec<_> = clients.lines().filter(|client| client.contains(" user=reader ")).collect();
    assert_eq!(clients.len(), 2, "{clients:?}");
    assert!(clients.iter().all(|client| client.contains(" name=animal-store ")), "{clients:?}");
}

/// Returns whether the user may run a command.
fn may_run(server: &RedisServer, user: &str, command: &str) -> bool {
    let command: Vec<_> = command.split(' ').collect();
    server.command(&[&["ACL", "DRYRUN", user], &command[..]].concat()) == "OK"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_user_for_lookups_can_write_uses_and_nothing_else() {
    let server = RedisServer::start();
    let keys = user(&server, "reader", "%R~shop:v1:*", &format!("{USES} {READER}"));
    assert!(is_ready(&keys.directory().await).await);
    let mut metrics = Registry::default();
    let (uses, writer_end) = keys.measured_uses(&mut metrics);
    uses.recorder().note(&ApiKeyId::new("key"), ApiKeyUse::GetPet);
    drop(uses);
    writer_end.await.expect("the writer does not panic");
    assert_eq!(metric(&metrics, r#"use_writes_total{result="written"}"#), "1");

    assert!(may_run(&server, "reader", "ZADD shop:v1:uses:request GT 1 key"));
    for command in [
        "ZADD shop:v1:token:x GT 1 key",
        "ZADD shop:v1:index GT 1 key",
        "ZADD store:v1:uses:request GT 1 key",
        "HSET shop:v1:token:x id key",
        "DEL shop:v1:token:x",
        "DEL shop:v1:uses:request",
        "ZRANGE shop:v1:uses:request 0 -1",
        "ZREM shop:v1:uses:request key",
    ] {
        assert!(!may_run(&server, "reader", command), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_permission_to_write_uses_keys_are_still_found() {
    let server = RedisServer::start();
    Keys::at(&server.url(), long_timeouts()).add("key", "token").await;
    let keys = user(&server, "reader", "%R~shop:v1:*", READER);
    let mut metrics = Registry::default();
    let (uses, writer_end) = keys.measured_uses(&mut metrics);
    uses.recorder().note(&ApiKeyId::new("key"), ApiKeyUse::Request);
    drop(uses);
    writer_end.await.expect("the writer does not panic");
    assert_eq!(metric(&metrics, r#"use_writes_total{result="failed"}"#), "1");
    becomes(&keys.directory().await, "token", Accepted).await;
}

/// Calls every operation of a store.
async fn use_store(keys: &Keys) -> Result<(), ApiKeyStoreError> {
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
    store.list_uses().await?;
    let exported = store.export().await?;
    assert!(store.revoke(&ApiKeyId::new("key")).await?.is_some());
    store.check_writable().await?;
    assert_eq!(store.import(exported).await?.added, 2);
    assert!(store.revoke(&ApiKeyId::new("key")).await?.is_some());
    store.list().await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_needs_eighteen_permissions_on_its_own_names() {
    let server = RedisServer::start();
    server.command(&["ZADD", "shop:v1:uses:request", "1", "revoked"]);
    use_store(&user(&server, "writer", "~shop:v1:*", WRITER)).await.expect("the permissions suffice");
    assert_eq!(server.command(&["DBSIZE"]), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_permission_to_remove_them_ids_of_expired_keys_stay_in_the_index() {
    let server = RedisServer::start();
    let keys = user(&server, "writer", "~shop:v1:*", &without(WRITER, "+hdel"));
    let ending = NewToken { lifetime: Some(Duration::from_millis(1)), ..new_token("ending") };
    keys.store.add(api_key("ending"), ending).await.expect("add");
    while !keys.store.list().await.expect("list").is_empty() {}
    assert_eq!(keys.store.list().await.expect("list"), []);
    assert_eq!(server.command(&["--scan"]), "shop:v1:index");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_lacks_any_other_permission_fails() {
    for (left_out, others) in each_left_out(WRITER).filter(|&(left_out, _)| left_out != CLEANUP) {
        let server = RedisServer::start();
        let keys = user(&server, "writer", "~shop:v1:*", &others);
        let error = use_store(&keys).await.expect_err(left_out);
        let ApiKeyStoreError::Unavailable(cause) = error else { panic!("{left_out}: {error:?}") };
        assert!(cause.to_string().contains("docs/operations.md lists the permissions"), "{left_out}: {cause}");
    }
}

/// A change may need several commands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_without_every_permission_is_not_applied_in_part() {
    let server = RedisServer::start();
    let admin = Keys::at(&server.url(), long_timeouts());
    let key = admin.add("key", "token").await;
    let before = everything(&server);
    for (left_out, others) in each_left_out(WRITER).filter(|&(left_out, _)| left_out != CLEANUP) {
        let Keys { store, .. } = user(&server, "writer", "~shop:v1:*", &others);
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
        let mut records = admin.store.export().await.expect("export");
        records[0].key = api_key("new");
        records[0].digest = new_token("new").digest;
        records[0].expires = Some(SystemTime::now() + Duration::from_hours(1));
        let checked = store.check_writable().await;
        let imported = store.import(records).await.map(drop);
        assert_eq!(checked.is_ok(), imported.is_ok(), "{left_out}: {checked:?}");
        if imported.is_ok() {
            admin.revoke(&api_key("new")).await;
        }
        for outcome in [added, rotated, revoked, checked, imported] {
            assert!(matches!(outcome, Ok(()) | Err(ApiKeyStoreError::Unavailable(_))), "{left_out}: {outcome:?}");
        }
        // The creation times may differ.
        assert_eq!(names(&everything(&server)), names(&before), "{left_out}");
        assert_eq!(admin.store.list().await.expect("list").len(), 1, "{left_out}");
    }
}

fn names(entries: &[String]) -> Vec<&str> {
    entries.iter().filter_map(|entry| entry.split(' ').next()).collect()
}
