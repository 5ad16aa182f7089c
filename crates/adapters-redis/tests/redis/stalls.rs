//! Interruptions that are shorter than the timeout: lookups wait for the next session, and respond with what Redis
//! returns in it.

use animal_store_test_servers::FaultProxy;
use futures_util::future::join_all;
use tokio::join;

use crate::{
    requests::{Accepted, Refused, use_token, wait_until},
    setup::{Proxied, long_wait},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_wait_for_the_next_session_and_those_of_a_key_that_is_revoked_meanwhile_are_refused() {
    let mut proxied = Proxied::new(long_wait()).await;
    proxied.add_and_cache("revoked").await;
    proxied.add_and_cache("kept").await;
    proxied.proxy.freeze();
    wait_until("the session ends", async || proxied.metric("redis_connected") == 0).await;
    let Proxied { directory, keys, proxy, .. } = &mut proxied;
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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
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
            wait_until("Redis responds to both", async || proxied.lookups() >= before + 2).await;
            wait_until("the responses are held up", async || proxied.proxy.held() > 0).await;
            proxied.proxy.freeze();
            let accepted = proxied.proxy.accepted();
            end(&proxied.proxy);
            // The lease can expire shortly before the session ends.
            wait_until("the next session is opened", async || proxied.proxy.accepted() > accepted).await;
            proxied.keys.revoke("revoked").await;
            proxied.proxy.heal();
        };
        let (revoked, kept, ()) = join!(use_token(&directory, "revoked"), use_token(&directory, "kept"), interruption);
        assert_eq!((revoked, kept), (Refused, Accepted));
    }
}
