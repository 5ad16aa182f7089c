//! The minimal permissions of the Redis users.

use std::time::{Duration, SystemTime};

use animal_store_app::{
    ApiKeyChange, IssuedApiKey,
    ports::{ApiKeyChangeError, ApiKeyStore, StoreFailure},
};
use animal_store_test_servers::RedisServer;

use crate::{
    requests::{Accepted, Failed, Refused, becomes, changes_to, is_ready, use_token},
    setup::{Keys, add, long_timeouts, revoke, rotate},
    uses::note,
};

/// Permissions of the user for lookups.
pub(crate) const READER: &str = "+ping +client|tracking +exists +hmget +pttl";
/// Further permissions of this user, for the record of uses. Without them, nothing else fails.
const USES: &str = "~shop:v1:uses:* +zadd";
/// Permissions of the user for the administration.
const WRITER: &str = "+watch +multi +exec +time +hget +hgetall +hmget +hset +hdel +del +pexpireat +zrange +zrem +eval";
/// The permission to remove the uses of keys that do not exist. Without it these stay there, which is harmless.
const CLEANUP: &str = "+zrem";
const HOUR: Duration = Duration::from_hours(1);

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

    // A connection has a name without a permission for it.
    let clients = server.command(&["CLIENT", "LIST"]);
    let clients: Vec<_> = clients.lines().filter(|client| client.contains(" user=reader ")).collect();
    assert_eq!(clients.len(), 2, "{clients:?}");
    assert!(clients.iter().all(|client| client.contains(" name=animal-store ")), "{clients:?}");

    admin.revoke(&key).await;
    changes_to(&directory, "token", Refused).await;
    server.command(&["FLUSHALL"]);
    assert_eq!(use_token(&directory, "invented").await, Refused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_lacks_a_permission_fails() {
    let server = RedisServer::start();
    Keys::at(&server.url(), long_timeouts()).add("key", "token").await;
    let elsewhere = ["%W~shop:v1:*", "%R~shop:v1:index", "%R~shop:v1:token:*", "%R~store:v1:*"];
    let users = each_left_out(READER).map(|(_, others)| ("%R~shop:v1:*", others));
    for (names, permissions) in users.chain(elsewhere.map(|names| (names, READER.to_owned()))) {
        let directory = user(&server, "reader", names, &permissions).directory().await;
        assert!(!is_ready(&directory).await, "{names} {permissions}");
        for token in ["token", "invented"] {
            assert_eq!(use_token(&directory, token).await, Failed, "{token} with {names} {permissions}");
        }
    }
}

/// Without the permission to write uses, keys are still found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_user_for_lookups_can_write_uses_and_nothing_else() {
    let server = RedisServer::start();
    Keys::at(&server.url(), long_timeouts()).add("key", "token").await;
    for (permissions, writes) in [(READER.to_owned(), [0, 1]), (format!("{USES} {READER}"), [1, 0])] {
        let keys = user(&server, "reader", "%R~shop:v1:*", &permissions);
        becomes(&keys.directory().await, "token", Accepted).await;
        assert_eq!(note(&keys, &["key"]).await, writes, "{permissions}");
    }
    let dry_run = |command: &str| {
        let command: Vec<_> = command.split(' ').collect();
        server.command(&[&["ACL", "DRYRUN", "reader"], &command[..]].concat())
    };
    assert_eq!(dry_run("ZADD shop:v1:uses:request GT 1 key"), "OK");
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
        assert_ne!(dry_run(command), "OK", "{command}");
    }
}

/// Calls every operation of a store.
async fn use_store(keys: &Keys) -> Result<(), ApiKeyChangeError> {
    let store = &keys.store;
    for change in [
        add("ending", "ending", Some(Duration::from_millis(1))),
        add("key", "old", None),
        rotate("key", "new", HOUR),
        add("limited", "limited", Some(HOUR)),
        rotate("limited", "next", Duration::ZERO),
        revoke("limited"),
    ] {
        store.change(change).await?;
    }
    while store.list().await?.len() > 1 {}
    store.list_uses().await?;
    let key = store.list().await?.remove(0);
    store.change(revoke("key")).await?;
    store.check_writable().await?;
    store.change(ApiKeyChange::Import(key)).await?;
    store.change(revoke("key")).await?;
    Ok(store.list().await.map(drop)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_needs_fourteen_permissions_on_its_own_names() {
    let server = RedisServer::start();
    server.command(&["ZADD", "shop:v1:uses:request", "1", "revoked"]);
    use_store(&user(&server, "writer", "~shop:v1:*", WRITER)).await.expect("the permissions suffice");
    assert_eq!(server.command(&["DBSIZE"]), "0");

    for (left_out, others) in each_left_out(WRITER).filter(|&(left_out, _)| left_out != CLEANUP) {
        let server = RedisServer::start();
        let error = use_store(&user(&server, "writer", "~shop:v1:*", &others)).await.expect_err(left_out);
        let ApiKeyChangeError::Store(StoreFailure::Unavailable(cause)) = error else { panic!("{left_out}: {error:?}") };
        assert!(cause.to_string().contains("docs/operations/redis.md lists the permissions"), "{left_out}: {cause}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_permission_to_remove_them_ids_of_expired_keys_stay_in_the_index() {
    let server = RedisServer::start();
    let keys = user(&server, "writer", "~shop:v1:*", &without(WRITER, "+hdel"));
    keys.change(add("ending", "ending", Some(Duration::from_millis(1)))).await;
    while !keys.listed().await.is_empty() {}
    assert_eq!(keys.listed().await, [""; 0]);
    assert_eq!(server.command(&["--scan"]), "shop:v1:index");
}

/// A change may need several commands. Before an import, its permissions are checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_without_every_permission_is_not_applied_in_part() {
    let server = RedisServer::start();
    let admin = Keys::at(&server.url(), long_timeouts());
    admin.add("key", "token").await;
    admin.change(add("new", "new", Some(HOUR))).await;
    let [key, mut new]: [IssuedApiKey; 2] = admin.store.list().await.expect("list").try_into().expect("two keys");
    new.tokens[0].expires = Some(SystemTime::UNIX_EPOCH + HOUR * 24 * 365 * 100);
    admin.revoke(&new.key).await;
    let before = everything(&server);
    for (left_out, others) in each_left_out(WRITER).filter(|&(left_out, _)| left_out != CLEANUP) {
        let Keys { store, .. } = user(&server, "writer", "~shop:v1:*", &others);
        let checked = store.check_writable().await.is_ok();
        let changes =
            [add("new", "new", Some(HOUR)), rotate("key", "new", Duration::ZERO), revoke("key"), import(&new)];
        for change in changes {
            let imports = matches!(change, ApiKeyChange::Import(_));
            match store.change(change).await {
                Ok(outcome) => {
                    assert!(!imports || checked, "{left_out}");
                    if let Some(after) = outcome.after {
                        admin.revoke(&after.key).await;
                    }
                    admin.change(import(&key)).await;
                }
                Err(ApiKeyChangeError::Store(StoreFailure::Unavailable(_))) => {
                    assert!(!imports || !checked, "{left_out}");
                }
                Err(error) => panic!("{left_out}: {error:?}"),
            }
            assert_eq!(everything(&server), before, "{left_out}");
        }
    }
}

fn import(key: &IssuedApiKey) -> ApiKeyChange {
    ApiKeyChange::Import(key.clone())
}
