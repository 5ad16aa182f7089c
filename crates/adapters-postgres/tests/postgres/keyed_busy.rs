//! A key is in flight until the outcome of its first request is known. Other requests with it wait meanwhile.

use tokio::task::yield_now;

use crate::{fixture::HELD, prelude::*};

#[tokio::test(flavor = "multi_thread")]
async fn in_one_process_a_request_waits_for_its_key_even_if_the_first_one_was_dropped() {
    Fixture::in_both_modes(async |fixture| {
        let observer = &fixture.observer;
        let first = observer.block(|| fixture.add_keyed("first")).await;
        let mut again = fixture.add_keyed("first");
        // The key of a request that leaves the queue is free, and one that stops waiting for it does not take it.
        let leaving = fixture.add_keyed("one");
        let dropped = fixture.add_keyed("one");
        let mut waiting = fixture.add_keyed("one");
        drop((first, dropped, leaving));
        yield_now().await;
        assert!((&mut again).now_or_never().is_none(), "it was sent");
        assert!((&mut waiting).now_or_never().is_none());
        observer.unlock().await;
        assert!(matches!(again.await, Replayed(_)));
        let id = waiting.await.id();
        assert_eq!(fixture.add_keyed("one").await, Replayed(id));
        assert_eq!(observer.named("first").await, 1);
        assert_eq!(observer.named("one").await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_for_other_requests_with_its_key_in_any_process() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings.clone()).await;
        let observer = &fixture.observer;
        let other_store = Store::at(fixture.database.url(), settings.clone()).await;
        let third = Store::at(fixture.database.url(), settings).await;
        assert!(matches!(other_store.add_keyed("other").await, New(_)));
        assert!(matches!(third.add_keyed("other").await, Replayed(_)));

        observer.run("DELETE FROM idempotency_keys").await;
        let first = fixture.hold("slow").await;
        let again = tokio::spawn(other_store.add_keyed("slow"));
        let another = tokio::spawn(third.add_with_key("slow", "another"));
        observer.wait_for_locks("%", 2).await;
        fixture.release().await;
        let id = first.await.id();
        assert_eq!(again.await.expect("no panic"), Replayed(id));
        assert_eq!(another.await.expect("no panic"), Mismatch);
        assert_eq!(observer.named("slow").await, 1);

        // The first request fails.
        observer.run("DELETE FROM idempotency_keys").await;
        let first = fixture.hold("slow").await;
        let again = tokio::spawn(other_store.add_keyed("slow"));
        observer.wait_for_locks("%", 1).await;
        // It may be between two sleeps.
        let cancel = format!("SELECT pg_cancel_backend(pid) FROM {HELD}");
        let is_cancelled = async || observer.column(&cancel).await == ["t"];
        wait_until("the statement is cancelled", is_cancelled).await;
        assert_eq!(first.await, Failed(Timeout));
        fixture.release().await;
        assert!(matches!(again.await.expect("no panic"), New(_)));
        assert_eq!(observer.named("slow").await, 2);
    })
    .await;
}
