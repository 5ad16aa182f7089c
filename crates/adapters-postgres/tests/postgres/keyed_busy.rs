//! A key is in flight until the outcome of its first request is known. Other requests with it wait meanwhile.

use std::time::Duration;

use animal_store_adapters_postgres::{PostgresSettings, SchemaMode};
use futures_util::FutureExt;
use tokio::{runtime::Builder, task::yield_now, time};

use crate::{
    explain::empty_tables,
    fixture::Fixture,
    keyed::{Conflict, Failed, Mismatch, New, Replayed, add_keyed, add_with_key},
    outcomes::{Timeout, Unavailable},
    sql_session::SqlSession,
    store::{Store, in_both_modes, settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_one_process_a_request_waits_for_its_key_even_if_the_first_one_was_dropped() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::keyed(settings).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
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

/// The test moves the clock of the adapter, and PostgreSQL ends no statement by itself meanwhile: a machine that stalls
/// for a few seconds changes no outcome.
#[test]
fn a_request_whose_timeout_passes_in_the_queue_or_while_its_key_is_in_flight_is_not_stored() {
    // Its twentieth part, for which a request with a key waits for a lock, is longer than a machine stalls.
    let timeout = Duration::from_mins(20);
    let settings = PostgresSettings {
        schema: SchemaMode::Check,
        timeout,
        ..settings()
    };
    // Migrations need several threads, and only the clock of a single one can be moved.
    let several = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let database = several.block_on(empty_tables());
    let one = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    one.block_on(async {
        let fixture = Fixture::of(database, settings).await;
        // The batch before it is tried twice. Each attempt waits for the lock with its number.
        let body = "PERFORM pg_advisory_xact_lock(nextval('attempts')); RAISE 'again' USING ERRCODE = '40001'";
        fixture.observer.run("CREATE SEQUENCE attempts").await;
        fixture.trigger(&format!("IF NEW.name = 'first' THEN {body}; END IF")).await;
        let locking = SqlSession::of(&fixture.database).await;
        locking.run("SELECT pg_advisory_lock(1), pg_advisory_lock(2)").await;
        let waiting_for = async |lock| {
            let this_database = "database = (SELECT oid FROM pg_database WHERE datname = current_database())";
            let waiting = format!("pg_locks WHERE NOT granted AND objid = {lock} AND {this_database}");
            fixture.observer.wait_for_rows(&waiting, 1).await;
        };
        let mut first = fixture.begin_keyed("first");
        waiting_for(1).await;
        let waiting = fixture.begin_keyed("waiting");
        let again = fixture.begin_keyed("first");
        two_thirds_of_the_timeout(timeout).await;
        locking.run("SELECT pg_advisory_unlock(1)").await;
        waiting_for(2).await;
        two_thirds_of_the_timeout(timeout).await;

        assert_eq!((waiting.await, again.await), (Failed(Timeout), Conflict));
        assert!((&mut first).now_or_never().is_none(), "the batch before it is in flight");
        locking.run("SELECT pg_advisory_unlock(2)").await;
        assert_eq!(first.await, Failed(Unavailable));
        assert!(matches!(fixture.begin_keyed("later").await, New(_)));
        assert_eq!(fixture.names().await, ["later"]);
    });
}

async fn two_thirds_of_the_timeout(timeout: Duration) {
    time::pause();
    time::advance(timeout * 2 / 3).await;
    time::resume();
}
