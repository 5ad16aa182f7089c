//! Interruptions that are shorter than the timeout: lookups wait for the next session, and respond with what Redis
//! returns in it.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use animal_store_app::ports::StoreFailure;
use animal_store_test_servers::{FaultProxy, RedisServer};
use futures_util::{FutureExt, future::join_all};
use prometheus_client::registry::Registry;
use tokio::join;

use crate::{
    requests::{Accepted, Failed, Refused, becomes, becomes_ready, pause, use_token, wait_until},
    setup::{Keys, Proxied, calls, find, invalidations_client, long_wait, metric, settings},
};

async fn session_ends(proxied: &Proxied) {
    wait_until("the session ends", async || proxied.metric("redis_connected") == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stall_that_ends_the_session_delays_requests_and_fails_none() {
    let server = RedisServer::start();
    let keys = Keys::at(&server.url(), long_wait("shop:"));
    for number in 0..20 {
        keys.add(&format!("key-{number}"), &format!("token-{number}")).await;
    }
    let mut metrics = Registry::default();
    let directory = keys.measured_directory(&mut metrics).await;
    let tokens: Vec<_> = (0..20).map(|number| format!("token-{number}")).collect();
    for token in &tokens {
        becomes(&directory, token, Accepted).await;
    }
    let before = invalidations_client(&server);

    server.pause();
    let over = AtomicBool::new(false);
    let stall = async {
        wait_until("the session ends", async || metric(&metrics, "redis_connected") == "0").await;
        wait_until("requests wait", async || find(&directory, "token-0").now_or_never().is_none()).await;
        server.resume();
        becomes_ready(&directory).await;
        over.store(true, Ordering::Relaxed);
    };
    join!(
        join_all(tokens.iter().map(|token| (token, &directory, &over)).map(|(token, directory, over)| async move {
            while !over.load(Ordering::Relaxed) {
                assert_eq!(use_token(directory, token).await, Accepted, "{token}");
                pause().await;
            }
        })),
        stall,
    );
    assert_ne!(invalidations_client(&server), before, "the session did not end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_waits_while_its_key_is_revoked_is_refused() {
    let proxied = Proxied::new(long_wait("shop:")).await;
    let key = proxied.add_and_cache("revoked", "revoked").await;
    proxied.add_and_cache("kept", "kept").await;
    proxied.proxy.freeze();
    session_ends(&proxied).await;
    let Proxied { directory, keys, mut proxy, server: _server, .. } = proxied;
    // The requests begin first.
    let revocation = async {
        keys.revoke(&key).await;
        proxy.heal();
    };
    let (revoked, kept, ()) = join!(
        join_all(["revoked"; 10].map(|token| use_token(&directory, token))),
        use_token(&directory, "kept"),
        revocation
    );
    assert_eq!((revoked, kept), (vec![Refused; 10], Accepted));
    assert_eq!(use_token(&directory, "revoked").await, Refused);
}

/// A response over a connection of the session that ended could be older than a revocation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lookup_in_flight_when_its_session_ends_is_sent_again_in_the_next_one() {
    for end in [FaultProxy::cut, FaultProxy::half_close, |_: &FaultProxy| ()] as [fn(&_); 3] {
        let proxied = Proxied::new(long_wait("shop:")).await;
        let key = proxied.keys.add("key", "revoked").await;
        proxied.keys.add("kept", "kept").await;
        proxied.proxy.hold("label of ");
        let before = proxied.lookups();
        let Proxied { directory, keys, mut proxy, server, .. } = proxied;
        let interruption = async {
            // If the lease expires on a busy machine, they are sent again.
            wait_until("Redis responds to both", async || calls(&server, "hmget") >= before + 2).await;
            wait_until("the responses are held up", async || proxy.held() > 0).await;
            proxy.freeze();
            let accepted = proxy.accepted();
            end(&proxy);
            // The lease can expire shortly before the session ends.
            wait_until("the next session is opened", async || proxy.accepted() > accepted).await;
            keys.revoke(&key).await;
            proxy.heal();
        };
        let (revoked, kept, ()) = join!(use_token(&directory, "revoked"), use_token(&directory, "kept"), interruption);
        assert_eq!((revoked, kept), (Refused, Accepted));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_redis_stays_unavailable_requests_wait_once_and_then_fail_at_once() {
    let mut proxied = Proxied::new(settings("shop:")).await;
    let timeout = settings("shop:").timeout;
    proxied.add_and_cache("key", "token").await;
    let end = Instant::now();
    proxied.proxy.refuse();
    session_ends(&proxied).await;
    assert_eq!(use_token(&proxied.directory, "token").await, Failed);
    assert!(end.elapsed() >= timeout, "it did not wait: {:?}", end.elapsed());

    // A busy machine may delay a request.
    let mut quickest = Duration::MAX;
    for _ in 0..20 {
        let sent = Instant::now();
        let outcome = find(&proxied.directory, "token").await;
        assert!(matches!(outcome, Err(StoreFailure::Unavailable(_))), "{outcome:?}");
        quickest = quickest.min(sent.elapsed());
    }
    assert!(quickest < timeout / 10, "{quickest:?}");
}
