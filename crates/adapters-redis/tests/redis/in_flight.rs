//! Lookups in flight: a key is revoked meanwhile, or the session ends. Lookups wait for the next session for one
//! timeout, and respond with what Redis returns in it.

use crate::prelude::*;

/// Starts a lookup that Redis has responded to. The proxy holds the response.
async fn response_in_flight() -> (Proxied, ApiKey, JoinHandle<Option<Arc<ApiKey>>>) {
    let proxied = Proxied::with_proxy(long_timeouts(), |proxy| proxy.hold("label of key")).await;
    let key = proxied.keys.add("key", "token").await;
    for witness in ["before", "after"] {
        proxied.becomes_cached(witness, Refused).await;
    }
    invalidations_arrive(&proxied, "before").await;
    let lookup = start_lookup(&proxied);
    wait_until("the response is held up", async || {
        proxied.proxy.held() == 1
    })
    .await;
    (proxied, key, lookup)
}

/// Changes a cached token, the witness, and waits for its invalidation: invalidations of earlier changes arrive before
/// it.
async fn invalidations_arrive(proxied: &Proxied, witness: &str) {
    proxied
        .server
        .run(&format!("SET {} changed", name(witness)));
    wait_until("the witness is invalidated", async || {
        find(&proxied.directory, witness).now_or_never().is_none()
    })
    .await;
}

fn start_lookup(proxied: &Proxied) -> JoinHandle<Option<Arc<ApiKey>>> {
    let directory = Arc::clone(&proxied.directory);
    tokio::spawn(async move { find(&directory, "token").await.expect("find") })
}

#[tokio::test]
async fn a_response_from_before_a_key_was_removed_is_neither_cached_nor_shared_after_it() {
    for command in [format!("DEL {}", name("token")), "FLUSHALL".to_owned()] {
        let (mut proxied, key, lookup) = response_in_flight().await;
        proxied.server.run(&command);
        invalidations_arrive(&proxied, "after").await;
        let later = start_lookup(&proxied);
        assert_eq!(proxied.proxy.held(), 1);
        proxied.proxy.heal();

        assert_eq!(
            lookup.await.expect("the lookup").as_deref(),
            Some(&key),
            "it was valid when Redis was queried"
        );
        assert_eq!(later.await.expect("the lookup"), None, "{command}");
        assert_eq!(
            find(&proxied.directory, "token").await.expect("find"),
            None,
            "{command}"
        );
    }
}

#[tokio::test]
async fn a_response_from_before_a_change_does_not_prevent_the_caching_of_a_later_one() {
    let (mut proxied, key, lookup) = response_in_flight().await;
    proxied.keys.revoke("key").await;
    let again = proxied.keys.add("key-again", "token").await;
    invalidations_arrive(&proxied, "after").await;
    let later = start_lookup(&proxied);
    proxied.proxy.heal();

    assert_eq!(lookup.await.expect("the lookup").as_deref(), Some(&key));
    assert_eq!(later.await.expect("the lookup").as_deref(), Some(&again));
    assert_eq!(cached(&proxied.directory, "token"), Some(Accepted));
}

#[tokio::test]
async fn requests_wait_for_the_next_session_and_those_of_a_key_that_is_revoked_meanwhile_are_refused()
 {
    let mut proxied = Proxied::new(long_wait()).await;
    proxied.add_and_cache("revoked").await;
    proxied.add_and_cache("kept").await;
    proxied.proxy.freeze();
    wait_until("the session ends", async || {
        proxied.metric("redis_connected") == 0
    })
    .await;
    let Proxied {
        directory,
        keys,
        proxy,
        ..
    } = &mut proxied;
    // The requests begin first.
    let revocation = async {
        keys.revoke("revoked").await;
        proxy.heal();
    };
    let (revoked, kept, ()) = join!(
        join_all(["revoked"; 10].map(|token| use_token(directory, token))),
        join_all(["kept"; 10].map(|token| use_token(directory, token))),
        revocation
    );
    assert_eq!((revoked, kept), (vec![Refused; 10], vec![Accepted; 10]));
    assert_eq!(use_token(directory, "revoked").await, Refused);
}

/// A response over a connection of the session that ended could be older than a revocation.
#[tokio::test]
async fn a_lookup_in_flight_when_its_session_ends_is_sent_again_in_the_next_one() {
    for end in [FaultProxy::cut, FaultProxy::half_close, |_: &FaultProxy| ()] as [fn(&_); 3] {
        let mut proxied = Proxied::new(long_wait()).await;
        proxied.keys.add("revoked", "revoked").await;
        proxied.keys.add("kept", "kept").await;
        proxied.proxy.hold("label of ");
        let before = proxied.lookups();
        let directory = proxied.directory.clone();
        let interruption = async {
            // If the lease expires on a busy machine, they are sent again.
            wait_until("Redis responds to both", async || {
                proxied.lookups() >= before + 2
            })
            .await;
            wait_until("the responses are held up", async || {
                proxied.proxy.held() > 0
            })
            .await;
            proxied.proxy.freeze();
            let accepted = proxied.proxy.accepted();
            end(&proxied.proxy);
            // The lease can expire shortly before the session ends.
            wait_until("the next session is opened", async || {
                proxied.proxy.accepted() > accepted
            })
            .await;
            proxied.keys.revoke("revoked").await;
            proxied.proxy.heal();
        };
        let (revoked, kept, ()) = join!(
            use_token(&directory, "revoked"),
            use_token(&directory, "kept"),
            interruption
        );
        assert_eq!((revoked, kept), (Refused, Accepted));
    }
}
