//! A Redis that responds with errors: lookups fail, and a store changes nothing.

use crate::prelude::*;

struct Refusing {
    server: Arc<RedisServer>,
    keys: Keys,
    directory: RedisApiKeyDirectory,
}

impl Refusing {
    /// Starts a server with two keys, whose tokens are their ids.
    async fn with(options: &str) -> Self {
        let server = Arc::new(RedisServer::with(options));
        let keys = Keys::with(&server.url(), settings());
        keys.add("unused", "unused").await;
        keys.add("used", "used").await;
        let directory = keys.directory().await;
        becomes(&directory, "used", Accepted).await;
        Self {
            server,
            keys,
            directory,
        }
    }

    /// Waits until every request fails. Until then, none has the wrong outcome. Afterwards, all fail.
    async fn every_request_fails(&self) {
        wait_until("every request fails", async || {
            let mut outcomes = Vec::new();
            for (token, wrong) in [
                ("used", Refused),
                ("unused", Refused),
                ("invented", Accepted),
            ] {
                let outcome = use_token(&self.directory, token).await;
                assert_ne!(outcome, wrong, "{token}");
                outcomes.push(outcome);
            }
            outcomes == [Failed; 3] && !is_ready(&self.directory).await
        })
        .await;
        for token in ["used", "unused", "invented"].repeat(20) {
            assert_eq!(use_token(&self.directory, token).await, Failed, "{token}");
        }
    }

    async fn recovers(&self) {
        for (token, outcome) in [
            ("used", Accepted),
            ("unused", Accepted),
            ("invented", Refused),
        ] {
            becomes(&self.directory, token, outcome).await;
        }
        assert_eq!(self.keys.listed().await, ["unused", "used"]);
    }

    async fn no_key_can_be_made(&self) {
        self.refuses(add("new", "new", None)).await;
        self.refuses(rotate("used", "new", Duration::ZERO)).await;
        assert_fails(self.keys.store.check_writable().await, UNAVAILABLE);
    }

    async fn the_store_fails(&self) {
        self.no_key_can_be_made().await;
        self.refuses(revoke("used")).await;
    }

    async fn refuses(&self, change: ApiKeyChange) {
        assert_fails(self.keys.store.change(change, "test").await, UNAVAILABLE);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_loads_its_data_requests_fail_and_nothing_is_changed() {
    let options = "--enable-debug-command yes --loading-process-events-interval-bytes 1024";
    let refusing = Refusing::with(options).await;
    refusing.server.run("DEBUG POPULATE 60000 filler 100");
    refusing.server.run("CONFIG SET key-load-delay 5000");
    let server = Arc::clone(&refusing.server);
    // Redis responds when it has loaded everything: after five minutes, or soon after the delay is 0.
    let loading = tokio::task::spawn_blocking(move || server.run("DEBUG RELOAD"));
    refusing.every_request_fails().await;
    refusing.the_store_fails().await;
    assert!(!loading.is_finished());

    refusing.server.run("CONFIG SET key-load-delay 0");
    assert_eq!(loading.await.expect("redis-cli"), "OK");
    refusing.recovers().await;
}

/// By default, a replica that has lost its master answers all the same, with keys that may be revoked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_replica_requests_fail_until_it_is_the_master() {
    for stale_data in ["yes", "no"] {
        let refusing = Refusing::with(&format!("--replica-serve-stale-data {stale_data}")).await;
        refusing.server.run("REPLICAOF 127.0.0.1 1");
        refusing.every_request_fails().await;
        refusing.the_store_fails().await;
        let new = refusing.keys.directory().await;
        assert_eq!(use_token(&new, "used").await, Failed);

        refusing.server.run("REPLICAOF NO ONE");
        refusing.recovers().await;
        becomes(&new, "used", Accepted).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_replicas_it_needs_keys_are_looked_up_but_cannot_be_changed() {
    let refusing = Refusing::with("").await;
    refusing.server.run("CONFIG SET min-replicas-to-write 1");
    refusing.the_store_fails().await;
    refusing.recovers().await;
}

/// A leaked token has to be revoked at once, even if Redis is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_full_redis_keys_are_looked_up_listed_and_revoked_but_none_can_be_made() {
    let refusing = Refusing::with("").await;
    refusing.keys.add("expired", "expired").await;
    refusing.server.run(&format!("DEL {}", name("expired")));
    refusing.server.run("CONFIG SET maxmemory 1");
    refusing.no_key_can_be_made().await;
    refusing.recovers().await;
    refusing.keys.revoke("used").await;
    changes_to(&refusing.directory, "used", Refused).await;
    assert_eq!(refusing.keys.listed().await, ["unused"]);
    // The others were removed.
    assert_eq!(refusing.server.run("HKEYS shop:v1:index"), "unused");
    let entries = refusing.keys.store.audit_log().await.expect("listed");
    let changes: Vec<_> = entries.iter().map(|entry| &*entry.change).collect();
    assert_eq!(changes, ["create"; 3]);
}

/// Gives the user `app` all permissions, and the password `right`.
fn create_user(server: &RedisServer) {
    server.run("ACL SETUSER app on >right ~* &* +@all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_user_or_a_permission_requests_fail_until_they_are_back() {
    for command in ["ACL DELUSER app", "ACL SETUSER app -pttl"] {
        let server = RedisServer::start();
        create_user(&server);
        let keys = Keys::with(
            &format!("redis://app:right@localhost:{}", server.port()),
            settings(),
        );
        keys.add("key", "token").await;
        let directory = keys.directory().await;
        becomes(&directory, "token", Accepted).await;
        server.run(command);
        // Its connections are closed. Otherwise, only a token that is not cached needs the permission.
        if command.contains("DELUSER") {
            changes_to(&directory, "token", Failed).await;
        }
        assert_eq!(use_token(&directory, "invented").await, Failed, "{command}");

        create_user(&server);
        for (token, outcome) in [("token", Accepted), ("invented", Refused)] {
            becomes(&directory, token, outcome).await;
        }
    }
}
