//! A key is busy in its process as long as its first request is under way there, and not a moment longer.

use std::time::Duration;

use animal_store_adapters_postgres::PostgresSettings;
use futures_util::FutureExt;

use crate::{
    batches::Bench,
    calls::{Deadline, Outcome, Unavailable, a_moment},
    keyed::{Again, Asking, Busy, Failed, Keyed, Mismatch, New, ask, ask_as, comes_to_be_added},
    store::{Store, both_ways, settings},
};

/// What is known of it now.
fn now(asking: Asking) -> Option<Keyed> {
    asking.now_or_never()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_first_is_under_way_its_key_is_busy_also_when_nobody_waits_for_it() {
    for settings in both_ways(&settings()) {
        let bench = Bench::keyed(settings).await;
        bench.other.lock().await;
        let first = bench.begin_asking("one");
        bench.other.wait_for_waiting(1).await;
        assert_eq!(now(bench.begin_asking("one")), Some(Busy));
        drop(first);
        a_moment().await;
        assert_eq!(now(bench.begin_asking("one")), Some(Busy), "it was sent");
        bench.other.unlock().await;
        assert!(matches!(comes_to_be_added(&bench.store.repository, "one").await, Again(_)));
        assert_eq!(bench.other.named("one").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_left_the_queue_is_free() {
    let bench = Bench::keyed(settings()).await;
    let first = bench.block_keyed().await;
    for _ in 0..3 {
        let waiting = bench.begin_asking("one");
        assert_eq!(now(bench.begin_asking("one")), Some(Busy));
        drop(waiting);
    }
    let last = bench.begin_asking("one");
    bench.other.unlock().await;
    first.await;
    assert!(matches!(last.await, New(_)));
    assert_eq!(bench.other.named("one").await, 1);
}

/// Whoever hears of a failure may ask again in the same moment.
async fn is_free_after(bench: &Bench, failure: Outcome) {
    for _ in 0..200 {
        assert_eq!(ask(&bench.store.repository, "bad").await, Failed(failure));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_free_as_soon_as_its_answer_is_known() {
    let bench = Bench::keyed(settings()).await;
    let repository = &bench.store.repository;
    let New(id) = ask(repository, "good").await else { panic!("it is new") };
    for _ in 0..200 {
        assert_eq!(ask(repository, "good").await, Again(id));
    }
    bench.trigger("IF NEW.name = 'bad' THEN RAISE 'bad' USING ERRCODE = '22000'; END IF").await;
    is_free_after(&bench, Unavailable).await;
    bench.other.run("DROP TRIGGER spoil ON pets").await;
    bench
        .other
        .run("CREATE TRIGGER spoil BEFORE INSERT ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION spoil()")
        .await;
    bench
        .other
        .run("CREATE OR REPLACE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        .await;
    is_free_after(&bench, Unavailable).await;
    bench.other.run("DROP TRIGGER spoil ON idempotency_keys").await;
    assert!(matches!(ask(repository, "bad").await, New(_)));
    assert_eq!(bench.other.named("bad").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_free_after_a_deadline_and_nothing_was_stored() {
    let bench = Bench::keyed(PostgresSettings { timeout: Duration::from_secs(2), ..settings() }).await;
    bench.other.lock().await;
    for _ in 0..3 {
        assert_eq!(ask(&bench.store.repository, "late").await, Failed(Unavailable));
    }
    bench.other.unlock().await;
    assert!(matches!(comes_to_be_added(&bench.store.repository, "late").await, New(_)));
    assert_eq!(bench.other.named("late").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_busy_here_is_waited_for_elsewhere() {
    for settings in both_ways(&settings()) {
        let bench = Bench::keyed(settings.clone()).await;
        let elsewhere = Store::at(bench.database.url(), settings.clone()).await;
        let third = Store::at(bench.database.url(), settings).await;
        assert!(matches!(ask(&elsewhere.repository, "other").await, New(_)));
        assert!(matches!(ask(&third.repository, "other").await, Again(_)));
        bench.trigger("IF NEW.name = 'slow' THEN PERFORM pg_advisory_xact_lock(7); END IF").await;

        // It is not known whether the first comes about: then it does, and then it does not.
        for comes_about in [true, false] {
            bench.other.run("DELETE FROM idempotency_keys; SELECT pg_advisory_lock(7)").await;
            let first = bench.begin_asking("slow");
            bench.other.wait_for_locks("advisory", 1).await;
            let (again, another) = (elsewhere.repository.clone(), third.repository.clone());
            let again = tokio::spawn(async move { ask(&again, "slow").await });
            bench.other.wait_for_locks("transactionid", 1).await;
            let another = tokio::spawn(async move { ask_as(&another, "slow", "another").await });
            // It stands in line behind the other one.
            bench.other.wait_for_waiting_locks(3).await;
            assert_eq!(now(bench.begin_asking("slow")), Some(Busy));
            if comes_about {
                bench.other.run("SELECT pg_advisory_unlock(7)").await;
                let New(id) = first.await else { panic!("it is new") };
                assert_eq!(again.await.expect("it ends"), Again(id));
                assert_eq!(another.await.expect("it ends"), Mismatch);
                assert_eq!(bench.other.named("slow").await, 1);
            } else {
                let waits = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'";
                bench.other.column(&format!("{waits} AND datname = current_database()")).await;
                assert_eq!(first.await, Failed(Deadline));
                bench.other.run("SELECT pg_advisory_unlock(7)").await;
                // One of them is now the first.
                let ends = [again.await.expect("it ends"), another.await.expect("it ends")];
                assert!(matches!(ends, [New(_), Mismatch] | [Mismatch, New(_)]), "{ends:?}");
                assert_eq!(bench.other.count("pets WHERE name IN ('slow', 'another')").await, 2);
            }
        }
    }
}
