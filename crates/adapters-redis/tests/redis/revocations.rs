//! Changes between the steps of a revocation, and between those of a list. A proxy holds a command.

use std::{sync::Arc, time::Duration};

use animal_store_app::{
    ApiKey,
    ports::{ApiKeySource, ApiKeyStore, ApiKeyStoreError, ApiKeyTarget, NewToken},
    test_support::api_key,
};
use animal_store_test_servers::{FaultProxy, RedisServer};
use tokio::task::JoinHandle;

use crate::{
    requests::{Refused, becomes, wait_until},
    setup::{Keys, long_timeouts, name, new_token},
};

const HOUR: Duration = Duration::from_hours(1);
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
        let keys = Keys::at(&server.url(), long_timeouts());
        let held = Arc::new(Keys::at(&format!("redis://{}", proxy.address()), long_timeouts()));
        Self { keys, held, proxy, server }
    }

    /// Starts a call that waits before it sends this command.
    async fn start<T, F>(&self, command: &'static str, call: impl FnOnce(Arc<Keys>) -> F) -> JoinHandle<T>
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
        key: &ApiKey,
    ) -> JoinHandle<Result<Option<ApiKey>, ApiKeyStoreError>> {
        let id = key.id.clone();
        self.start(command, |keys| async move { keys.store.revoke(&id).await }).await
    }

    /// A token that no list shows could not be revoked.
    async fn every_token_is_listed(&self) {
        let stored = self.server.command(&["--scan", "--pattern", "shop:v1:token:*"]);
        let listed = self.keys.store.list().await.expect("list");
        assert_eq!(stored.lines().count(), listed.len(), "{stored} {listed:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_imported_during_its_revocation_is_listed_or_revoked() {
    let mut interrupted = Interrupted::new();
    let key = interrupted.keys.add("key", "token").await;
    let backup = interrupted.keys.store.export().await.expect("export");
    let revocation = interrupted.start_revocation(REMOVAL, &key).await;
    interrupted.keys.store.import(backup).await.expect("import");
    interrupted.proxy.heal();

    assert_eq!(revocation.await.expect("no panic").expect("revoke"), Some(key));
    interrupted.every_token_is_listed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_a_key_gets_during_its_revocation_is_revoked() {
    for (command, grace) in [(READ, Duration::ZERO), (READ, HOUR), (REMOVAL, Duration::ZERO), (REMOVAL, HOUR)] {
        let mut interrupted = Interrupted::new();
        let key = interrupted.keys.add("key", "token").await;
        let revocation = interrupted.start_revocation(command, &key).await;
        let rotated = interrupted.keys.store.rotate(&key.id, new_token("new"), grace).await.expect("rotate");
        assert!(rotated.is_some(), "{command} {grace:?}");
        interrupted.proxy.heal();

        assert_eq!(revocation.await.expect("no panic").expect("revoke"), Some(key), "{command} {grace:?}");
        let directory = interrupted.keys.directory().await;
        for token in ["token", "new"] {
            becomes(&directory, token, Refused).await;
        }
        interrupted.every_token_is_listed().await;
    }
}

/// The index lists a token of `old` that expires during the revocation, and that another key then gets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_moves_to_another_key_during_a_revocation_is_not_revoked() {
    let mut interrupted = Interrupted::new();
    let old = interrupted.keys.add("old", "moving").await;
    interrupted.keys.store.rotate(&old.id, new_token("new"), HOUR).await.expect("rotate").expect("the key exists");
    let revocation = interrupted.start_revocation(REMOVAL, &old).await;
    interrupted.server.command(&["DEL", &name("shop:", "moving")]);
    let other = interrupted.keys.add("other", "moving").await;
    interrupted.proxy.heal();

    assert_eq!(revocation.await.expect("no panic").expect("revoke"), Some(old));
    let listed = interrupted.keys.store.list().await.expect("list");
    assert_eq!(listed.iter().map(|entry| &entry.key).collect::<Vec<_>>(), [&other]);
    interrupted.every_token_is_listed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_imported_while_a_list_removes_its_id_stays_listed() {
    let mut interrupted = Interrupted::new();
    let limited = NewToken { lifetime: Some(HOUR), ..new_token("token") };
    interrupted.keys.store.add(api_key("key"), limited).await.expect("add");
    let backup = interrupted.keys.store.export().await.expect("export");
    // As if it had expired.
    interrupted.server.command(&["DEL", &name("shop:", "token")]);
    let list = interrupted.start(REMOVAL, |keys| async move { keys.store.list().await.expect("list") }).await;
    interrupted.keys.store.import(backup).await.expect("import");
    interrupted.proxy.heal();

    list.await.expect("no panic");
    assert_eq!(interrupted.keys.store.list().await.expect("list").len(), 1);
    interrupted.every_token_is_listed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_the_connection_is_lost_the_outcome_of_a_revocation_is_unknown_only_after_its_removal_was_sent() {
    for (command, is_unknown) in [(READ, false), (REMOVAL, true)] {
        let interrupted = Interrupted::new();
        let key = interrupted.keys.add("key", "token").await;
        let revocation = interrupted.start_revocation(command, &key).await;
        interrupted.proxy.cut();
        let error = revocation.await.expect("no panic").expect_err("the connection is lost");
        assert_eq!(matches!(error, ApiKeyStoreError::OutcomeUnknown(_)), is_unknown, "{command}: {error:?}");
        assert_eq!(matches!(error, ApiKeyStoreError::Unavailable(_)), !is_unknown, "{command}: {error:?}");
    }
}
