//! A key is in flight until the outcome of its first request is known. Other requests with it wait meanwhile.

use futures_util::FutureExt;
use tokio::task::yield_now;

use crate::{
    fixture::Fixture,
    keyed::{Failed, Mismatch, New, Replayed, add_keyed, add_with_key},
    outcomes::Timeout,
    store::{Store, in_both_modes, settings},
};

#[tokio::test(flavor = "multi_thread")]
async fn in_one_process_a_request_waits_for_its_key_even_if_the_first_one_was_dropped() {
    Fixture::keyed_in_both_modes(async |fixture| {
        let first = fixture.block_keyed().await;
        let mut again = fixture.begin_keyed("first");
        // The key of a request that leaves the queue is free.
        let [dropped, mut waiting] = [(); 2].map(|()| fixture.begin_keyed("one"));
        drop((first, dropped));
        yield_now().await;
        assert!(
            (&mut again).now_or_never().is_none(),
            "the first request was sent"
        );
        assert!((&mut waiting).now_or_never().is_none());
        fixture.observer.unlock().await;
        assert!(matches!(again.await, Replayed(_)));
        assert!(matches!(waiting.await, New(_)));
        assert_eq!(
            (
                fixture.observer.named("first").await,
                fixture.observer.named("one").await
            ),
            (1, 1)
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_for_other_requests_with_its_key_in_any_process() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::keyed(settings.clone()).await;
        let other_store = Store::at(fixture.database.url(), settings.clone()).await;
        let third = Store::at(fixture.database.url(), settings).await;
        assert!(matches!(add_keyed(&other_store.repository, "other").await, New(_)));
        assert!(matches!(add_keyed(&third.repository, "other").await, Replayed(_)));
        fixture.trigger("IF NEW.name = 'slow' THEN PERFORM pg_advisory_xact_lock(7); END IF").await;

        for commits in [true, false] {
            fixture.observer.run("DELETE FROM idempotency_keys; SELECT pg_advisory_lock(7)").await;
            let first = fixture.begin_keyed("slow");
            fixture.observer.wait_for_locks("advisory", 1).await;
            let again = other_store.repository.clone();
            let another = third.repository.clone();
            let again = tokio::spawn(async move { add_keyed(&again, "slow").await });
            fixture.observer.wait_for_locks("%", 2).await;
            if commits {
                let another = tokio::spawn(async move { add_with_key(&another, "slow", "another").await });
                fixture.observer.wait_for_locks("%", 3).await;
                fixture.observer.run("SELECT pg_advisory_unlock(7)").await;
                let New(id) = first.await else { panic!("it is new") };
                assert_eq!(again.await.expect("no panic"), Replayed(id));
                assert_eq!(another.await.expect("no panic"), Mismatch);
                assert_eq!(fixture.observer.named("slow").await, 1);
            } else {
                let waits = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'";
                fixture.observer.column(&format!("{waits} AND datname = current_database()")).await;
                assert_eq!(first.await, Failed(Timeout));
                fixture.observer.run("SELECT pg_advisory_unlock(7)").await;
                assert!(matches!(again.await.expect("no panic"), New(_)));
                assert_eq!(fixture.observer.named("slow").await, 2, "one for each value of `commits`");
            }
        }
    })
    .await;
}
