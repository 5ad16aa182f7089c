//! Timeouts that pass while a request waits for others. The test moves the clock of the adapter, and PostgreSQL ends no
//! statement by itself meanwhile: a machine that stalls for a few seconds changes no outcome.

use std::time::Duration;

use animal_store_adapters_postgres::{PostgresSettings, SchemaMode};
use animal_store_app::ports::PetRepository;
use animal_store_domain::PetStatus;
use futures_util::FutureExt;
use tokio::{join, runtime::Builder, time};

use crate::{
    explain::empty_tables,
    fixture::{Fixture, begin_to_find, poll_once},
    keyed::{Conflict, Failed, New},
    outcomes::{Success, Timeout, Unavailable, add, find, read_outcome},
    sql_session::SqlSession,
    store,
};

/// The twentieth part of this timeout, for which a request with a key waits for a lock, is longer than a machine stalls.
fn settings() -> PostgresSettings {
    PostgresSettings { timeout: Duration::from_mins(20), ..store::settings() }
}

/// Runs a test on one thread, which is the only one whose clock can be moved.
fn with_movable_clock(settings: &PostgresSettings, test: impl AsyncFnOnce(Fixture)) {
    // Migrations need several threads.
    let several = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let database = several.block_on(empty_tables());
    let one = Builder::new_current_thread().enable_all().build().expect("a runtime");
    one.block_on(async {
        test(Fixture::of(database, PostgresSettings { schema: SchemaMode::Check, ..settings.clone() }).await).await;
    });
}

/// Moves the clock by two thirds of the timeout.
async fn two_thirds_of_the_timeout() {
    time::pause();
    time::advance(settings().timeout * 2 / 3).await;
    time::resume();
}

#[test]
fn a_request_whose_timeout_passes_in_the_queue_or_while_its_key_is_in_flight_is_not_stored() {
    with_movable_clock(&settings(), async |fixture| {
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
        let (waiting, again) = (fixture.begin_keyed("waiting"), fixture.begin_keyed("first"));
        two_thirds_of_the_timeout().await;
        locking.run("SELECT pg_advisory_unlock(1)").await;
        waiting_for(2).await;
        two_thirds_of_the_timeout().await;

        assert_eq!((waiting.await, again.await), (Failed(Timeout), Conflict));
        assert!((&mut first).now_or_never().is_none(), "the batch before it is in flight");
        locking.run("SELECT pg_advisory_unlock(2)").await;
        assert_eq!(first.await, Failed(Unavailable));
        assert!(matches!(fixture.begin_keyed("later").await, New(_)));
        assert_eq!(fixture.names().await, ["later"]);
    });
}

#[test]
fn the_wait_for_earlier_reads_is_part_of_the_timeout_of_a_read() {
    let one_connection = PostgresSettings { connections_per_worker: 1, transaction_pooling: true, ..settings() };
    with_movable_clock(&one_connection, async |fixture| {
        let repository = &fixture.store.repository;
        assert!(find(repository, 1).await.is_ok());
        let backends = fixture.observer.backends().await;
        fixture.observer.lock().await;
        let first = begin_to_find(repository, 1);
        fixture.observer.wait_for_table_locks(1).await;
        // The queue of gets waits for the first get. A list waits for the end of its transaction.
        let gets = [begin_to_find(repository, 1), begin_to_find(repository, 1)];
        let lists = [None, Some(PetStatus::Sold)].map(|status| {
            let repository = repository.clone();
            poll_once(async move { repository.list(status, None, 10).await }.boxed())
        });
        two_thirds_of_the_timeout().await;
        fixture.observer.cancel_waiting("relation", 1).await;
        assert_eq!(read_outcome(&first.await), Unavailable);
        fixture.observer.wait_for_table_locks(1).await;
        two_thirds_of_the_timeout().await;

        let ([second, third], [list, list_by_status]) = (gets, lists);
        let (second, third, list, list_by_status) = join!(second, third, list, list_by_status);
        assert_eq!([&second, &third].map(read_outcome), [Timeout; 2]);
        assert_eq!([&list, &list_by_status].map(read_outcome), [Timeout; 2]);
        // They did not wait for the second statement.
        fixture.observer.wait_for_table_locks(1).await;
        fixture.observer.unlock().await;
        assert_eq!(read_outcome(&find(repository, 1).await), Success);
        assert_eq!(fixture.observer.backends().await, backends, "the connection is not broken");
        add(repository, "Rex").await.expect("added");
    });
}
