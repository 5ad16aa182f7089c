//! The minimal permissions of the Redis users.

use crate::{prelude::*, uses::note};

/// Permissions of the user for lookups.
pub(crate) const READER: &str = "+client|tracking +exists +hmget +pttl";
/// Further permissions of this user, for the record of uses. Without them, nothing else fails.
const USES: &str = "~shop:v1:uses:* +zadd";
/// Permissions of the user for the administration.
pub(crate) const WRITER: &str = "+watch +multi +exec +time +hget +hgetall +hmget +hset +hdel +del +pexpireat +zrange \
     +zrem +eval +zadd +zremrangebyrank +zremrangebyscore +hrandfield";
const CALLS: [&str; 8] = [
    "add", "rotate", "revoke", "import", "check", "list", "log", "uses",
];
/// The calls that need a permission.
const NEEDED: [(&str, &str); 18] = [
    ("+watch", "add rotate revoke import check list"),
    ("+multi", "add rotate revoke import check list"),
    ("+exec", "add rotate revoke import check list"),
    ("+time", "add rotate revoke import check"),
    ("+hget", "add rotate revoke import check"),
    ("+hgetall", "list uses"),
    ("+hmget", "add rotate revoke import check list"),
    ("+hset", "add rotate import check"),
    ("+hdel", "revoke"),
    ("+del", "rotate revoke"),
    ("+pexpireat", "add import check"),
    ("+zrange", "uses log"),
    ("+zrem", ""),
    ("+eval", "revoke"),
    // A revocation is not recorded without them.
    ("+zadd", "add rotate check"),
    ("+zremrangebyrank", "add rotate check"),
    ("+zremrangebyscore", "add rotate check"),
    ("+hrandfield", ""),
];

/// Creates a user that has only these permissions on these names.
pub(crate) fn user(server: &RedisServer, name: &str, names: &str, permissions: &str) -> Keys {
    server.run(&format!(
        "ACL SETUSER {name} reset on >secret {names} {permissions}"
    ));
    Keys::at(&format!(
        "redis://{name}:secret@localhost:{}",
        server.port()
    ))
}

pub(crate) fn without(permissions: &str, left_out: &str) -> String {
    permissions
        .split(' ')
        .filter(|&permission| permission != left_out)
        .collect::<Vec<_>>()
        .join(" ")
}

#[tokio::test]
async fn a_directory_needs_five_permissions_on_its_own_names() {
    let server = RedisServer::start();
    let admin = Keys::of(&server);
    admin.add("key", "token").await;
    let directory = user(&server, "reader", "%R~shop:v1:*", READER)
        .directory()
        .await;
    becomes(&directory, "token", Accepted).await;
    assert_eq!(use_token(&directory, "invented").await, Refused);

    // A connection has a name without a permission for it.
    let clients = server.run("CLIENT LIST");
    let clients: Vec<_> = clients
        .lines()
        .filter(|client| client.contains(" user=reader "))
        .collect();
    assert_eq!(clients.len(), 2, "{clients:?}");
    assert!(
        clients
            .iter()
            .all(|client| client.contains(" name=animal-store ")),
        "{clients:?}"
    );

    admin.revoke("key").await;
    changes_to(&directory, "token", Refused).await;
}

#[tokio::test]
async fn a_directory_that_lacks_a_permission_fails() {
    let server = RedisServer::start();
    Keys::of(&server).add("key", "token").await;
    let elsewhere = [
        "%W~shop:v1:*",
        "%R~shop:v1:index",
        "%R~shop:v1:token:*",
        "%R~store:v1:*",
    ];
    let users = READER
        .split(' ')
        .map(|left_out| ("%R~shop:v1:*", without(READER, left_out)));
    for (names, permissions) in users.chain(elsewhere.map(|names| (names, READER.to_owned()))) {
        let directory = user(&server, "reader", names, &permissions)
            .directory()
            .await;
        assert!(!is_ready(&directory).await, "{names} {permissions}");
        assert_eq!(
            use_token(&directory, "token").await,
            Failed,
            "{names} {permissions}"
        );
    }
}

/// Without the permission to write uses, keys are still found.
#[tokio::test]
async fn the_user_for_lookups_can_write_uses_and_nothing_else() {
    let server = RedisServer::start();
    Keys::of(&server).add("key", "token").await;
    for (permissions, writes) in [
        (READER.to_owned(), [0, 1]),
        (format!("{USES} {READER}"), [1, 0]),
    ] {
        let keys = user(&server, "reader", "%R~shop:v1:*", &permissions);
        becomes(&keys.directory().await, "token", Accepted).await;
        assert_eq!(note(&keys, &["key"]).await, writes, "{permissions}");
    }
    for (command, is_permitted) in [
        ("ZADD shop:v1:uses:request GT 1 key", true),
        ("ZADD shop:v1:token:x GT 1 key", false),
        ("HSET shop:v1:token:x id key", false),
        ("DEL shop:v1:uses:request", false),
    ] {
        assert_eq!(
            server.run(&format!("ACL DRYRUN reader {command}")) == "OK",
            is_permitted,
            "{command}"
        );
    }
}

/// Runs one of [`CALLS`].
async fn call(
    store: &RedisApiKeyStore,
    call: &str,
    imported: &IssuedApiKey,
) -> Result<(), ApiKeyChangeError> {
    let change = match call {
        "add" => add("new", "new", Some(HOUR)),
        "rotate" => rotate("key", "new", Duration::ZERO),
        "revoke" => revoke("key"),
        "import" => ApiKeyChange::Import(imported.clone()),
        "check" => return Ok(store.check_writable().await?),
        "list" => return Ok(store.list().await.map(drop)?),
        "log" => return Ok(store.audit_log().await.map(drop)?),
        _ => return Ok(store.list_uses().await.map(drop)?),
    };
    store.change(change, "test").await.map(drop)
}

/// A change may need several commands. Before an import, its permissions are checked.
#[tokio::test]
async fn a_call_of_a_store_without_a_permission_that_it_needs_fails_and_changes_nothing() {
    let server = RedisServer::with("--enable-debug-command yes");
    let admin = Keys::of(&server);
    let imported = admin
        .change(add("new", "new", Some(HOUR)))
        .await
        .after
        .expect("the key exists");
    assert_eq!(NEEDED.map(|(permission, _)| permission).join(" "), WRITER);
    for (left_out, needed_by) in NEEDED {
        let writer = user(&server, "writer", "~shop:v1:*", &without(WRITER, left_out)).store;
        for name in CALLS {
            server.run("FLUSHALL");
            admin.add("key", "token").await;
            let before = server.run("DEBUG DIGEST");
            let outcome = call(&writer, name, &imported).await;
            if !needed_by.split(' ').any(|needs| needs == name) {
                outcome.unwrap_or_else(|error| panic!("{name} without {left_out}: {error:?}"));
                continue;
            }
            let cause = assert_fails(outcome, UNAVAILABLE);
            let start = format!(
                "Redis at localhost:{} refused a command of the user \"writer\": ",
                server.port()
            );
            assert!(cause.starts_with(&start), "{left_out}: {cause}");
            assert!(
                cause.ends_with("; docs/operations/redis.md lists the permissions that it needs"),
                "{cause}"
            );
            assert_eq!(
                server.run("DEBUG DIGEST"),
                before,
                "{name} without {left_out}"
            );
        }
    }
    let keys = user(&server, "writer", "~store:*", WRITER);
    let cause = assert_fails(keys.store.list().await, UNAVAILABLE);
    let refused = "the user \"writer\" access to the names shop:v1:*: NOPERM";
    assert!(cause.contains(refused), "{cause}");
}

/// The permissions to remove them are optional: what stays is harmless.
#[tokio::test]
async fn entries_of_keys_that_do_not_exist_are_removed_with_permission() {
    for (permissions, left) in [
        (WRITER.to_owned(), ""),
        (
            without(&without(WRITER, "+hrandfield"), "+zrem"),
            "shop:v1:index\nshop:v1:uses:request",
        ),
    ] {
        let server = RedisServer::start();
        let keys = user(&server, "writer", "~shop:v1:*", &permissions);
        keys.add("ended", "ended").await;
        keys.add("revoked", "revoked").await;
        server.run(&format!("DEL {}", name("ended")));
        server.run("ZADD shop:v1:uses:request 1 revoked 1 ended");
        keys.revoke("revoked").await;
        assert_eq!(keys.listed().await, [""; 0]);
        server.run("DEL shop:v1:changes");
        let names = server.run("--scan");
        let mut names: Vec<_> = names.lines().collect();
        names.sort_unstable();
        assert_eq!(names.join("\n"), left);
    }
}
