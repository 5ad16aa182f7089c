//! The bound on concurrent lookups, and lookups that outlive the request that started them.

use std::{sync::mpsc, thread};

use crate::prelude::*;

#[tokio::test]
async fn lookups_beyond_the_bound_are_refused_at_once_and_no_others_are() {
    let mut proxied = Proxied::new(RedisSettings {
        max_lookups: 3,
        ..long_timeouts()
    })
    .await;
    proxied.add_and_cache("token").await;
    let directory = Arc::clone(&proxied.directory);
    proxied.proxy.freeze();

    let bounded = ["token-0", "token-1", "token-2"];
    for token in bounded {
        // An earlier lookup may still have to return its permit.
        wait_until("the lookup is pending", async || {
            find(&directory, token).now_or_never().is_none()
        })
        .await;
    }
    let before = proxied.failures("overloaded");
    for number in 3..100 {
        let outcome = find(&directory, &format!("token-{number}")).now_or_never();
        assert_fails(outcome.expect("at once"), OVERLOADED);
    }
    assert_eq!(proxied.failures("overloaded"), before + 97);
    assert_eq!(cached(&directory, "token"), Some(Accepted));

    proxied.proxy.heal();
    assert_eq!(
        join_all(bounded.map(|token| use_token(&directory, token))).await,
        [Refused; 3]
    );
    wait_until("the permits are back", async || {
        find(&directory, "token-3").await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn lookups_over_a_frozen_connection_fail_after_the_timeout() {
    let proxied = Proxied::new(long_lease()).await;
    becomes(&proxied.directory, "earlier", Refused).await;
    let failures = || ["timeout", "unavailable"].map(|reason| proxied.failures(reason));
    let before = failures();
    proxied.proxy.freeze();
    let failed = timeout(TEST_TIMEOUT, find(&proxied.directory, "token"))
        .await
        .expect("it fails in time");
    assert_fails(failed, TIMED_OUT);
    assert_eq!(failures(), [before[0] + 1, before[1]]);
}

/// Each worker of the HTTP server has its own runtime. The request is cancelled as well.
#[tokio::test]
async fn a_lookup_continues_for_others_after_the_runtime_that_started_it_was_shut_down() {
    let Proxied {
        directory,
        keys,
        mut proxy,
        server: _server,
        ..
    } = Proxied::new(long_timeouts()).await;
    keys.add("key", "token").await;
    becomes(&directory, "earlier", Refused).await;
    proxy.freeze();

    let other = Arc::clone(&directory);
    let (started, is_started) = oneshot::channel();
    let (joined, is_joined) = mpsc::channel::<()>();
    let worker = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        let mut lookup = Box::pin(find(&other, "token"));
        assert!(
            runtime
                .block_on(async { (&mut lookup).now_or_never() })
                .is_none(),
            "the connection is frozen"
        );
        started.send(()).expect("the test waits for it");
        is_joined.recv().expect_err("the sender is dropped");
    });
    is_started.await.expect("the worker starts a lookup");
    let mut second = Box::pin(use_token(&directory, "token"));
    assert!((&mut second).now_or_never().is_none());
    drop(joined);
    worker.join().expect("the worker does not panic");
    proxy.heal();
    assert_eq!(second.await, Accepted);
}
