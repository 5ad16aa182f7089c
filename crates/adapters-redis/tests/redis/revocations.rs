//! Changes between the steps of a revocation, and between those of a list. A proxy holds a command.

use std::sync::Mutex;

use tracing::subscriber::set_default;
use tracing_subscriber::fmt::MakeWriter;

use crate::prelude::*;

/// Reads a token.
const READ: &str = "HMGET";
/// Removes an id from the index, also in a script.
const REMOVAL: &str = "HDEL";

struct Interrupted {
    /// A store that does not use the proxy.
    keys: Keys,
    /// A store whose commands the proxy can hold.
    held: Arc<Keys>,
    proxy: FaultProxy,
    server: RedisServer,
}

impl Interrupted {
    fn new() -> Self {
        let server = RedisServer::start();
        let proxy = FaultProxy::to(server.port());
        let keys = Keys::of(&server);
        let held = Arc::new(Keys::at(&url_of(&proxy)));
        Self {
            keys,
            held,
            proxy,
            server,
        }
    }

    /// Starts a call that waits before it sends this command.
    async fn start<T, F>(
        &self,
        command: &'static str,
        call: impl FnOnce(Arc<Keys>) -> F,
    ) -> JoinHandle<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.proxy.hold(command);
        let call = tokio::spawn(call(Arc::clone(&self.held)));
        wait_until("the call is held", async || self.proxy.held() == 1).await;
        call
    }

    async fn start_revocation(
        &self,
        command: &'static str,
        id: &'static str,
    ) -> JoinHandle<Result<ChangedApiKey, ApiKeyChangeError>> {
        self.start(command, async move |keys| {
            keys.store.change(revoke(id), "test").await
        })
        .await
    }

    async fn listed(&self) -> Vec<IssuedApiKey> {
        self.keys.store.list().await.expect("list")
    }

    /// A token that no list shows could not be revoked.
    async fn every_token_is_listed(&self) {
        let stored = self.server.run("--scan --pattern shop:v1:token:*");
        let listed = self.keys.listed().await;
        assert_eq!(stored.lines().count(), listed.len(), "{stored} {listed:?}");
    }
}

#[tokio::test]
async fn a_token_that_a_key_gets_during_its_revocation_is_revoked() {
    for (command, grace) in [
        (READ, Duration::ZERO),
        (READ, HOUR),
        (REMOVAL, Duration::ZERO),
        (REMOVAL, HOUR),
    ] {
        let mut interrupted = Interrupted::new();
        interrupted.keys.add("key", "token").await;
        let revocation = interrupted.start_revocation(command, "key").await;
        interrupted.keys.change(rotate("key", "new", grace)).await;
        interrupted.proxy.heal();

        revocation.await.expect("no panic").expect("revoke");
        let directory = interrupted.keys.directory().await;
        for token in ["token", "new"] {
            becomes(&directory, token, Refused).await;
        }
        interrupted.every_token_is_listed().await;
    }
}

/// The index lists a token of `old` that expires during the revocation, and that another key then gets.
#[tokio::test]
async fn a_token_that_moves_to_another_key_during_a_revocation_is_not_revoked() {
    let mut interrupted = Interrupted::new();
    interrupted.keys.add("old", "moving").await;
    interrupted.keys.change(rotate("old", "new", HOUR)).await;
    let revocation = interrupted.start_revocation(REMOVAL, "old").await;
    interrupted.server.run(&format!("DEL {}", name("moving")));
    interrupted.keys.add("other", "moving").await;
    interrupted.proxy.heal();

    revocation.await.expect("no panic").expect("revoke");
    assert_eq!(interrupted.keys.listed().await, ["other"]);
    interrupted.every_token_is_listed().await;
}

#[tokio::test]
async fn a_key_that_is_imported_while_another_change_removes_its_id_stays_listed() {
    let mut interrupted = Interrupted::new();
    interrupted
        .keys
        .change(add("key", "token", Some(HOUR)))
        .await;
    let backup = interrupted.listed().await.remove(0);
    // As if it had expired.
    interrupted.server.run(&format!("DEL {}", name("token")));
    let other = interrupted
        .start(REMOVAL, async move |keys| keys.add("other", "other").await)
        .await;
    interrupted
        .keys
        .change(ApiKeyChange::Import(backup.clone()))
        .await;
    interrupted.proxy.heal();

    other.await.expect("no panic");
    assert_eq!(interrupted.listed().await[0], backup);
    interrupted.every_token_is_listed().await;
}

/// A list, a log and a list of uses are commands that read.
#[tokio::test]
async fn commands_that_read_change_nothing_and_a_change_removes_ids_of_expired_keys() {
    let Interrupted { keys, server, .. } = Interrupted::new();
    for id in ["expired", "kept"] {
        keys.change(add(id, id, Some(HOUR))).await;
    }
    server.run(&format!("DEL {}", name("expired")));
    server.run("ZADD shop:v1:uses:request 60 expired 60 revoked");
    let contents = || {
        let names = server.run("KEYS *");
        let mut dumps: Vec<_> = names
            .lines()
            .map(|name| server.run(&format!("DUMP {name}")))
            .collect();
        dumps.sort();
        dumps
    };
    let before = contents();
    assert_eq!(keys.listed().await, ["kept"]);
    keys.store.audit_log().await.expect("list the changes");
    keys.store.list_uses().await.expect("list the uses");
    keys.store.check_writable().await.expect("writable");
    assert_eq!(contents(), before);
    let ids = || server.run("HKEYS shop:v1:index");
    assert!(ids().contains("expired"));
    keys.change(rotate("kept", "new", HOUR)).await;
    assert_eq!(ids().trim(), "kept");
}

/// The index was lost, for example.
#[tokio::test]
async fn a_token_that_is_missing_in_the_index_is_not_given_to_another_key() {
    let Interrupted { keys, server, .. } = Interrupted::new();
    keys.add("a", "token").await;
    server.run("DEL shop:v1:index");
    let before = server.run(&format!("DUMP {}", name("token")));
    let added = keys.store.change(add("b", "token", None), "test").await;
    assert!(
        matches!(added, Err(ApiKeyChangeError::Refused(_))),
        "{added:?}"
    );
    assert_eq!(server.run(&format!("DUMP {}", name("token"))), before);
    assert_eq!(keys.listed().await, [""; 0]);
}

/// Its repetition finds no key, and is not recorded.
#[tokio::test]
async fn if_the_connection_is_lost_the_outcome_of_a_revocation_is_unknown_only_after_its_removal_was_sent()
 {
    for (command, failure, logged) in [(READ, UNAVAILABLE, 0), (REMOVAL, UNKNOWN, 1)] {
        let log: &Mutex<Vec<u8>> = Box::leak(Box::default());
        let subscriber = tracing_subscriber::fmt().with_writer(move || log.make_writer());
        let _guard = set_default(subscriber.finish());
        let interrupted = Interrupted::new();
        interrupted.keys.add("key", "token").await;
        let revocation = interrupted.start_revocation(command, "key").await;
        interrupted.proxy.cut();
        assert_fails(revocation.await.expect("no panic"), failure);
        let log = log.lock().expect("no panic");
        let log = String::from_utf8_lossy(&log);
        let count = log.matches("the revocation is not recorded").count();
        assert_eq!(count, logged, "{log}");
    }
}

#[tokio::test]
async fn if_the_connection_is_lost_while_entries_are_appended_their_outcome_is_unknown() {
    let interrupted = Interrupted::new();
    interrupted.keys.add("key", "token").await;
    let log = interrupted.keys.store.audit_log().await.expect("a log");
    let append = async move |keys: Arc<Keys>| keys.store.append_audit(log).await;
    let append = interrupted.start("ZADD", append).await;
    interrupted.proxy.cut();
    assert_fails(append.await.expect("no panic"), UNKNOWN);
}
