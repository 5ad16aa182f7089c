//! Connections that fail: calls fail in time, and succeed again without a restart.

use tokio::join;

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_half_closed_or_terminated_are_replaced() {
    Fixture::in_both_modes(async |fixture| {
        let observer = &fixture.observer;
        for end in [FaultProxy::cut, FaultProxy::half_close] {
            let before = observer.backends().await;
            end(&fixture.proxy);
            fixture.wait_for(Success).await;
            observer.wait_until_ended(&before).await;
        }
        observer.end_backends().await;
        fixture.wait_for(Success).await;
        // The next check of the readiness opens its own.
        observer.wait_for_backends(4).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_frozen_connection_every_call_fails_in_time_and_later_ones_at_once() {
    // In a transaction, BEGIN has no response: the pet was not sent.
    let [plain, pooling] = both_modes(&short_timeout());
    for (settings, added, failed) in [
        (plain, Unknown, [1, 1, 0]),
        (pooling, Unavailable, [1, 0, 1]),
    ] {
        let mut fixture = Fixture::with(settings).await;
        fixture.wait_until_ready().await;
        // On a busy machine, requests of the start can be among them.
        let before = fixture.failures();
        fixture.proxy.freeze();
        let calls = async { join!(fixture.find(1), fixture.add("lost")) };
        let (found, lost) = timeout(PROMPT, calls).await.expect("they fail in time");
        assert_eq!((read_outcome(&found), add_outcome(&lost)), (Timeout, added));
        let after = fixture.failures();
        let difference = [0, 1, 2].map(|reason| after[reason] - before[reason]);
        assert_eq!(difference, failed);

        // The first timeout marks its connection as broken, and the next read uses the other one.
        let next = fixture.list(None, 0, 10).await;
        assert_eq!(read_outcome(&next), Timeout);
        for _ in 0..10 {
            assert_eq!(fixture.list_find_add().await, [Unavailable; 3]);
        }
        assert!(fixture.not_ready().await.is_some());
        fixture.proxy.heal();
        fixture.wait_until_it_works().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_fail_as_soon_as_the_server_terminates_their_connections() {
    let fixture = Fixture::new().await;
    let locking = SqlSession::of(&fixture.database).await;
    // A get and a list are in flight on different connections, and other gets wait.
    let get = locking.block(|| fixture.find(1)).await;
    let list = fixture.list(None, 0, 10);
    locking.wait_for_table_locks(2).await;
    let others: Vec<_> = (1..=20).map(|id| fixture.find(id)).collect();
    fixture.observer.terminate_backends().await;
    assert_eq!(read_outcome(&get.await), Unavailable);
    assert_eq!(read_outcome(&list.await), Unavailable);
    for other in join_all(others).await {
        assert_eq!(read_outcome(&other), Unavailable);
    }
    locking.unlock().await;
    fixture.wait_for(Success).await;
}
