//! A Redis that answers, but not what it was asked. A directory does not know then; a store changes nothing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_adapters_redis::RedisApiKeyDirectory;
use animal_store_app::{
    ApiKey,
    ports::{ApiKeyStore, ApiKeyStoreError},
    test_support::api_key,
};
use animal_store_test_servers::RedisServer;

use crate::{
    keys::{Keys, LEASE, PATIENCE, REPORTED, new_token, settings},
    uses::{Accepted, Failed, Outcome, Refused, a_moment, ask, comes_to, is_ready, soon_comes_to},
};

struct Refusing {
    server: Arc<RedisServer>,
    keys: Keys,
    directory: RedisApiKeyDirectory,
    /// It has been used.
    key: ApiKey,
}

impl Refusing {
    async fn with(options: &[&str]) -> Self {
        let server = Arc::new(RedisServer::with(options));
        let keys = Keys::at(&server.url(), settings("shop:"));
        let key = keys.add("key", "used").await;
        keys.add("unused-key", "unused").await;
        let directory = keys.directory().await;
        comes_to(&directory, "used", Accepted).await;
        Self { server, keys, directory, key }
    }

    /// Nothing that is not known to be is refused or accepted, until everything fails.
    async fn comes_to_fail(&self) {
        let start = Instant::now();
        loop {
            let outcomes = [ask(&self.directory, "unused").await, ask(&self.directory, "invented").await];
            let used = ask(&self.directory, "used").await;
            assert_ne!(used, Refused);
            assert_ne!(outcomes[0], Refused);
            assert_ne!(outcomes[1], Accepted);
            if [used, outcomes[0], outcomes[1]] == [Failed; 3] && !is_ready(&self.directory).await {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{used:?}, {outcomes:?}");
            a_moment().await;
        }
    }

    async fn fails_for(&self, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            for token in ["used", "unused", "invented"] {
                assert_eq!(ask(&self.directory, token).await, Failed, "{token}");
            }
            a_moment().await;
        }
    }

    async fn recovers(&self) {
        for (token, outcome) in [("used", Accepted), ("unused", Accepted), ("invented", Refused)] {
            comes_to(&self.directory, token, outcome).await;
        }
        assert_eq!(self.keys.store.list().await.expect("list").len(), 2, "something was changed");
    }

    async fn no_key_is_made(&self) {
        let store = &self.keys.store;
        unavailable(&store.add(api_key("new"), new_token("new")).await);
        unavailable(&store.rotate(&self.key.id, new_token("new"), Duration::ZERO).await);
    }

    async fn the_store_fails(&self) {
        self.no_key_is_made().await;
        unavailable(&self.keys.store.revoke(&self.key.id).await);
    }
}

fn unavailable<T: std::fmt::Debug>(outcome: &Result<T, ApiKeyStoreError>) {
    assert!(matches!(outcome, Err(ApiKeyStoreError::Unavailable(_))), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_loads_its_data_nobody_knows_and_nothing_is_changed() {
    let options = ["--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024"];
    let refusing = Refusing::with(&options).await;
    refusing.server.command(&["DEBUG", "POPULATE", "600", "filler", "100"]);
    refusing.server.command(&["CONFIG", "SET", "key-load-delay", "5000"]);
    let server = Arc::clone(&refusing.server);
    // It answers when everything is loaded.
    let loading = tokio::task::spawn_blocking(move || server.command(&["DEBUG", "RELOAD"]));
    refusing.comes_to_fail().await;
    refusing.the_store_fails().await;
    refusing.fails_for(LEASE / 2).await;
    assert!(!loading.is_finished(), "it was not loading all the time");

    assert_eq!(loading.await.expect("redis-cli"), "OK");
    refusing.recovers().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_has_lost_its_master_and_must_not_say_what_it_knows_fails() {
    let refusing = Refusing::with(&["--replica-serve-stale-data", "no"]).await;
    refusing.server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    refusing.comes_to_fail().await;
    refusing.fails_for(LEASE).await;
    refusing.the_store_fails().await;

    refusing.server.command(&["REPLICAOF", "NO", "ONE"]);
    refusing.recovers().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_replica_keys_are_looked_up_and_not_changed() {
    let refusing = Refusing::with(&[]).await;
    refusing.server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    refusing.the_store_fails().await;
    refusing.recovers().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_redis_is_full_keys_are_looked_up_and_none_is_made() {
    let refusing = Refusing::with(&[]).await;
    refusing.server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    refusing.no_key_is_made().await;
    refusing.recovers().await;
}

/// A token that has leaked cannot wait for room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_redis_is_full_a_key_can_be_revoked() {
    let refusing = Refusing::with(&[]).await;
    refusing.server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    refusing.keys.revoke(&refusing.key).await;
    soon_comes_to(&refusing.directory, "used", Refused).await;
}

/// Both of one that is there from the beginning, and of one that comes later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_right_password_nobody_knows_and_nothing_is_changed() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "app", "on", ">right", "~*", "&*", "+@all"]);
    let at = |login: &str| Keys::at(&format!("redis://{login}localhost:{}", server.port()), settings("shop:"));
    let right = at("app:right@");
    right.add("key", "token").await;
    for login in ["app:wrong@", "other:right@"] {
        let wrong = at(login);
        let directory = wrong.directory().await;
        assert!(!is_ready(&directory).await, "{login}");
        for token in ["token", "invented"] {
            assert_eq!(ask(&directory, token).await, Failed, "{login}, {token}");
        }
        unavailable(&wrong.store.add(api_key("new"), new_token("new")).await);
        unavailable(&wrong.store.list().await);
        unavailable(&wrong.store.revoke(&api_key("key").id).await);
    }
    assert_eq!(right.store.list().await.expect("list").len(), 1);
    server.command(&["CONFIG", "SET", "requirepass", "another"]);
    assert_eq!(ask(&at("").directory().await, "token").await, Failed, "without a password");
    assert_eq!(ask(&right.directory().await, "token").await, Accepted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_is_deleted_knows_nothing_from_then_on() {
    let server = RedisServer::start();
    let create = || server.command(&["ACL", "SETUSER", "app", "on", ">right", "~*", "&*", "+@all"]);
    create();
    let keys = Keys::at(&format!("redis://app:right@localhost:{}", server.port()), settings("shop:"));
    keys.add("key", "token").await;
    let directory = keys.directory().await;
    comes_to(&directory, "token", Accepted).await;
    server.command(&["ACL", "DELUSER", "app"]);
    soon_comes_to(&directory, "token", Failed).await;
    assert_eq!(ask(&directory, "invented").await, Failed);

    create();
    comes_to(&directory, "token", Accepted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_that_is_taken_away_makes_look_ups_fail_until_it_is_given_back() {
    for permission in ["hmget", "pttl", "ping"] {
        let server = RedisServer::start();
        server.command(&["ACL", "SETUSER", "app", "on", ">right", "~*", "&*", "+@all"]);
        let keys = Keys::at(&format!("redis://app:right@localhost:{}", server.port()), settings("shop:"));
        keys.add("key", "token").await;
        let directory = keys.directory().await;
        server.command(&["ACL", "SETUSER", "app", &format!("-{permission}")]);
        let start = Instant::now();
        // One without PING shows at the next sign of life.
        while permission == "ping" && is_ready(&directory).await {
            assert!(start.elapsed() < LEASE + REPORTED, "it is still ready");
            a_moment().await;
        }
        for token in ["token", "invented"] {
            assert_eq!(ask(&directory, token).await, Failed, "{token} without {permission}");
        }
        server.command(&["ACL", "SETUSER", "app", &format!("+{permission}")]);
        for (token, outcome) in [("token", Accepted), ("invented", Refused)] as [(&str, Outcome); 2] {
            comes_to(&directory, token, outcome).await;
        }
    }
}
