//! A directory while its connections or its Redis fail, and how long a revoked key is still accepted then. Time counts
//! from the moment when the store has confirmed the revocation.

use std::{sync::mpsc, thread};

use crate::prelude::*;

/// Adds two cached keys and a key that is not cached. A fourth token, `invented`, belongs to no key.
async fn with_keys(settings: RedisSettings) -> Proxied {
    let proxied = Proxied::new(settings).await;
    proxied.keys.add("unused", "unused").await;
    for token in ["used", "revoked"] {
        proxied.add_and_cache(token).await;
    }
    proxied
}

/// The key `revoked` was revoked meanwhile.
async fn recovers(proxied: &Proxied) {
    changes_to(&proxied.directory, "revoked", Refused).await;
    for (token, outcome) in [
        ("used", Accepted),
        ("unused", Accepted),
        ("invented", Refused),
    ] {
        becomes(&proxied.directory, token, outcome).await;
    }
    wait_until("it is ready", async || is_ready(&proxied.directory).await).await;
}

/// The bound of one lease needs no margin for a busy machine: it counts from a heartbeat that was sent before. While
/// the server is paused, the revocation is confirmed when it has resumed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_does_not_respond_only_cached_tokens_are_accepted_for_one_lease() {
    let faults: [fn(&Proxied); 3] = [
        |proxied| proxied.proxy.freeze(),
        |proxied| proxied.proxy.delay(3 * LEASE),
        |proxied| proxied.server.pause(),
    ];
    for fault in faults {
        let mut proxied = with_keys(settings()).await;
        fault(&proxied);
        let Proxied {
            directory,
            keys,
            proxy,
            server,
            ..
        } = &mut proxied;
        let since = Instant::now();
        let requests = async {
            while since.elapsed() < 2 * LEASE {
                for token in ["used", "revoked", "unused", "invented"] {
                    let sent = Instant::now();
                    let outcome = use_token(directory, token).await;
                    if ["used", "revoked"].contains(&token) && sent < since + LEASE {
                        assert_ne!(outcome, Refused, "{token}");
                    } else {
                        assert_eq!(outcome, Failed, "{token} after {:?}", sent - since);
                    }
                }
                pause().await;
            }
            assert!(!is_ready(directory).await);
            proxy.heal();
            server.resume();
        };
        join!(keys.revoke("revoked"), requests);
        recovers(&proxied).await;
    }
}

/// Without a session, a request waits only until one timeout after the last one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_connections_were_closed_every_request_fails_until_there_is_a_session() {
    let mut proxied = with_keys(long_lease()).await;
    proxied.proxy.refuse();
    proxied.keys.revoke("revoked").await;
    for token in ["used", "revoked", "unused", "invented"] {
        changes_to(&proxied.directory, token, Failed).await;
        is_unavailable(&proxied, token).await;
    }
    assert!(!is_ready(&proxied.directory).await);

    proxied.proxy.heal();
    recovers(&proxied).await;
}

async fn is_unavailable(proxied: &Proxied, token: &str) {
    assert_fails(find(&proxied.directory, token).await, UNAVAILABLE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_counts_from_its_heartbeat_and_not_from_the_response() {
    let lease = Duration::from_secs(1);
    let proxied = Proxied::new(RedisSettings {
        lease,
        ..long_timeouts()
    })
    .await;
    proxied.proxy.delay(lease / 8);
    let mut last = proxied.lease();
    let mut renewals = 0;
    wait_until("it is renewed three times", async || {
        use_token(&proxied.directory, "token").await;
        let left = proxied.lease();
        renewals += u32::from(left > last);
        last = left;
        // The first response may have come without the delay.
        assert!(renewals <= 1 || left <= 0.75, "{left}");
        renewals == 3
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_lookups_the_lease_expires_and_the_next_lookup_renews_it_first() {
    let proxied = with_keys(few_seconds()).await;
    wait_until("it expires during a session", async || {
        proxied.lease() == 0.0 && proxied.metric("redis_connected") == 1
    })
    .await;
    assert!(is_ready(&proxied.directory).await);

    let expires = || wait_until("it expires", async || proxied.lease() == 0.0);
    expires().await;
    proxied.server.run("REPLICAOF 127.0.0.1 1");
    // A heartbeat may have renewed it meanwhile.
    expires().await;
    for token in ["used", "unused"] {
        assert_eq!(
            use_token(&proxied.directory, token).await,
            Failed,
            "{token}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lost_its_data_accepts_no_key() {
    let mut proxied = with_keys(long_lease()).await;
    let left = proxied.lease();
    assert!(
        left > 0.0 && left <= long_lease().lease.as_secs_f64(),
        "{left}"
    );
    assert_eq!(proxied.metric("redis_connected"), 1);
    let failures = proxied.failures("unavailable");
    proxied.server.stop();
    // The lease does not expire within this test.
    changes_to(&proxied.directory, "used", Failed).await;
    let state = (proxied.metric("redis_connected"), proxied.lease());
    assert_eq!(state, (0, 0.0));
    assert!(proxied.failures("unavailable") > failures);

    proxied.server.start_again();
    for token in ["used", "unused", "invented"] {
        becomes(&proxied.directory, token, Refused).await;
    }
    proxied.add_and_cache("another").await;
    assert_eq!(proxied.metric("redis_connected"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_starts_without_a_connection_fails_and_recovers() {
    for prepare in [FaultProxy::refuse, |proxy: &mut FaultProxy| proxy.freeze()] as [fn(&mut _); 2]
    {
        let mut proxied = Proxied::with_proxy(settings(), prepare).await;
        proxied.keys.add("key", "token").await;
        assert!(!is_ready(&proxied.directory).await);
        for token in ["token", "invented"] {
            is_unavailable(&proxied, token).await;
        }

        proxied.proxy.heal();
        becomes(&proxied.directory, "token", Accepted).await;
        becomes(&proxied.directory, "invented", Refused).await;
        wait_until("it is ready", async || is_ready(&proxied.directory).await).await;
    }
}

/// The connection with the invalidations is held up, and the connection for lookups is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_only_invalidations_are_held_up_a_key_is_accepted_for_one_lease_at_most() {
    // Half of it, the limit of a heartbeat, does not pass on a busy machine before the revocation.
    let lease = Duration::from_secs(4);
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    proxy.hold("invalidate");
    let keys = Keys::with(&server.url(), settings());
    keys.add("key", "token").await;
    let settings = RedisSettings {
        lease,
        ..few_seconds()
    };
    let directory = Keys::with(&url_of(&proxy), settings).directory().await;
    becomes(&directory, "token", Accepted).await;
    keys.revoke("key").await;
    let revoked = Instant::now();
    while revoked.elapsed() < 2 * lease {
        let sent = revoked.elapsed();
        assert!(
            use_token(&directory, "token").await != Accepted || sent < lease,
            "{sent:?}"
        );
        pause().await;
    }
    assert_eq!(proxy.held(), 1);
    becomes(&directory, "token", Refused).await;
}

/// A session without invalidations is as useless as one without lookups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_redis_closed_either_connection_a_revoked_key_is_not_accepted() {
    let proxied = Proxied::new(long_timeouts()).await;
    for (token, flag) in [("token-1", " flags=tB "), ("token-2", " flags=N ")] {
        proxied.add_and_cache(token).await;
        let clients = proxied.server.run("CLIENT LIST TYPE normal");
        let mut clients = clients.lines().filter(|client| client.contains(" resp=3"));
        let client = clients
            .find(|client| client.contains(flag))
            .expect("the connection");
        let id = client.split([' ', '=']).nth(1).expect("its id");
        assert_eq!(proxied.server.run(&format!("CLIENT KILL ID {id}")), "1");

        proxied.keys.revoke(token).await;
        changes_to(&proxied.directory, token, Refused).await;
    }
}

/// This includes the task that supervises the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_has_to_run_for_a_lease_to_expire() {
    let server = RedisServer::start();
    let url = server.url();
    let keys = Keys::with(&url, settings());
    keys.add("key", "token").await;
    let (sender, receiver) = oneshot::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let blocked = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let directory = runtime.block_on(async {
            let directory = Keys::with(&url, settings()).directory().await;
            becomes(&directory, "token", Accepted).await;
            directory
        });
        // From here on, nothing runs on this runtime.
        sender.send(directory).ok().expect("the test waits for it");
        stopped.recv().expect_err("the sender is dropped");
    });
    let directory: RedisApiKeyDirectory = receiver.await.expect("a directory");
    keys.revoke("key").await;
    let revoked = Instant::now();
    loop {
        let sent = revoked.elapsed();
        // A lookup that the cache cannot serve never ends.
        let found = timeout(LEASE / 4, find(&directory, "token")).await;
        if !found.is_ok_and(|found| found.is_ok_and(|key| key.is_some())) {
            break;
        }
        assert!(sent < LEASE, "{sent:?}");
    }
    drop(stop);
    blocked.join().expect("the thread does not panic");
}

/// The process ends with a session whose directory is in use.
#[tokio::test]
async fn a_session_ends_with_its_directory() {
    let server = RedisServer::start();
    let registry = &mut Registry::default();
    let connecting = RedisApiKeyDirectory::connect(endpoint(&server.url()), settings(), registry);
    let (directory, session) = connecting.await;
    assert!(!session.is_finished());
    drop(directory);
    let ended = timeout(TEST_TIMEOUT, session).await.expect("it ends");
    ended.expect("it does not panic");
}
