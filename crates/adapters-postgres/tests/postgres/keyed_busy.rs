//! A key is in flight in its process until the outcome of its first request is known, and free afterwards.

use futures_util::FutureExt;

use crate::{
    fixture::Fixture,
    keyed::{Conflict, Failed, Mismatch, New, Replayed, add_keyed, add_keyed_until_stored, add_with_key},
    outcomes::{Outcome, Timeout, Unavailable, a_moment},
    store::{Store, in_both_modes, settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_in_flight_until_the_outcome_is_known_even_if_its_request_was_dropped() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::keyed(settings).await;
        fixture.observer.lock().await;
        let first = fixture.begin_keyed("one");
        fixture.observer.wait_for_table_locks(1).await;
        assert_eq!(fixture.begin_keyed("one").now_or_never(), Some(Conflict));
        drop(first);
        a_moment().await;
        assert_eq!(fixture.begin_keyed("one").now_or_never(), Some(Conflict), "it was sent");
        fixture.observer.unlock().await;
        assert!(matches!(add_keyed_until_stored(&fixture.store.repository, "one").await, Replayed(_)));
        assert_eq!(fixture.observer.named("one").await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_whose_request_left_the_queue_is_free() {
    let fixture = Fixture::keyed(settings()).await;
    let first = fixture.block_keyed().await;
    for _ in 0..3 {
        let waiting = fixture.begin_keyed("one");
        assert_eq!(fixture.begin_keyed("one").now_or_never(), Some(Conflict));
        drop(waiting);
    }
    let last = fixture.begin_keyed("one");
    fixture.observer.unlock().await;
    first.await;
    assert!(matches!(last.await, New(_)));
    assert_eq!(fixture.observer.named("one").await, 1);
}

/// A client may retry as soon as it gets a failure.
async fn is_free_after(fixture: &Fixture, failure: Outcome) {
    for _ in 0..50 {
        assert_eq!(add_keyed(&fixture.store.repository, "bad").await, Failed(failure));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_free_as_soon_as_its_request_has_a_response() {
    let fixture = Fixture::keyed(settings()).await;
    let repository = &fixture.store.repository;
    let New(id) = add_keyed(repository, "good").await else { panic!("it is new") };
    for _ in 0..50 {
        assert_eq!(add_keyed(repository, "good").await, Replayed(id));
    }
    fixture.trigger("IF NEW.name = 'bad' THEN RAISE 'bad' USING ERRCODE = '22000'; END IF").await;
    is_free_after(&fixture, Unavailable).await;
    fixture.observer.run("DROP TRIGGER spoil ON pets").await;
    fixture
        .observer
        .run("CREATE TRIGGER spoil BEFORE INSERT ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION spoil()")
        .await;
    fixture
        .observer
        .run("CREATE OR REPLACE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        .await;
    is_free_after(&fixture, Unavailable).await;
    fixture.observer.run("DROP TRIGGER spoil ON idempotency_keys").await;
    assert!(matches!(add_keyed(repository, "bad").await, New(_)));
    assert_eq!(fixture.observer.named("bad").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_free_after_a_timeout_and_nothing_is_stored() {
    let fixture = Fixture::keyed(settings()).await;
    fixture.observer.lock().await;
    for _ in 0..3 {
        let late = add_keyed(&fixture.store.repository, "late");
        let (late, ()) = tokio::join!(late, fixture.observer.cancel_waiting("relation", 1));
        assert_eq!(late, Failed(Timeout));
    }
    fixture.observer.unlock().await;
    assert!(matches!(add_keyed_until_stored(&fixture.store.repository, "late").await, New(_)));
    assert_eq!(fixture.observer.named("late").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_processes_wait_for_a_key_that_is_in_flight() {
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
            let (again, another) = (other_store.repository.clone(), third.repository.clone());
            let again = tokio::spawn(async move { add_keyed(&again, "slow").await });
            fixture.observer.wait_for_locks("transactionid", 1).await;
            let another = tokio::spawn(async move { add_with_key(&another, "slow", "another").await });
            fixture.observer.wait_for_locks("%", 3).await;
            assert_eq!(fixture.begin_keyed("slow").now_or_never(), Some(Conflict));
            if commits {
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
                // Either request may be the first now.
                let results = [again.await.expect("no panic"), another.await.expect("no panic")];
                assert!(matches!(results, [New(_), Mismatch] | [Mismatch, New(_)]), "{results:?}");
                assert_eq!(fixture.observer.count("pets WHERE name IN ('slow', 'another')").await, 2);
            }
        }
    })
    .await;
}
