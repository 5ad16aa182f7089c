//! Records that another transaction has locked: requests for them wait within the timeout, and no others.

use std::time::Instant;

use animal_store_adapters_postgres::PostgresSettings;
use futures_util::future::join_all;

use crate::{
    fixture::Fixture,
    keyed::{Conflict, Keyed, New, Replayed, add_keyed},
    outcomes::{PROMPT, add},
    sql_session::SqlSession,
    store::{few_seconds, in_both_modes, settings},
};

/// Adds these pets with their keys in one batch, while the insert of the first pet is held in PostgreSQL. Unlike the
/// wait for a lock, it has the whole timeout of a statement.
async fn add_together(fixture: &Fixture, first: &str, names: &[String]) -> Vec<Keyed> {
    fixture.observer.run("CREATE TABLE gate (); INSERT INTO gate DEFAULT VALUES").await;
    let is_held = format!("NEW.name = '{first}' AND EXISTS (SELECT FROM gate)");
    fixture.trigger(&format!("WHILE {is_held} LOOP PERFORM pg_sleep(0.01); END LOOP")).await;
    let first = fixture.begin_keyed(first);
    let sleeping = "pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    fixture.observer.wait_for_rows(sleeping, 1).await;
    let batch: Vec<_> = names.iter().map(|name| fixture.begin_keyed(name)).collect();
    fixture.observer.run("DELETE FROM gate").await;
    assert!(matches!(first.await, New(_)));
    let results = join_all(batch).await;
    fixture.observer.run("DROP TRIGGER spoil ON pets; DROP TABLE gate").await;
    results
}

/// A transaction that has inserted a record of this key and has not ended.
async fn make_record(fixture: &Fixture, name: &str) -> SqlSession {
    let session = SqlSession::of(&fixture.database).await;
    let row = format!("('shop', sha256('{name}'), sha256('another'), 1, now() + interval '1 hour')");
    session.run(&format!("BEGIN; INSERT INTO idempotency_keys VALUES {row}")).await;
    session
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_a_locked_record_waits_alone_and_conflicts_after_its_timeout() {
    in_both_modes(&few_seconds(), async |settings| {
        let timeout = settings.timeout;
        let fixture = Fixture::keyed(settings).await;
        let names = names(8);
        let locking = make_record(&fixture, &names[2]).await;
        let start = Instant::now();
        let results = add_together(&fixture, "first", &names).await;
        for (index, result) in results.iter().enumerate() {
            assert_eq!(matches!(result, New(_)), index != 2, "{results:?}");
        }
        assert!(results[2] == Conflict && start.elapsed() >= timeout * 9 / 10, "{:?}", start.elapsed());
        assert_eq!(fixture.observer.named(&names[2]).await, 0);
        locking.run("ROLLBACK").await;
        let New(id) = add_keyed(&fixture.store.repository, &names[2]).await else { panic!("it is new") };

        locking.run(&format!("BEGIN; SELECT FROM idempotency_keys WHERE pet_id = {id} FOR UPDATE")).await;
        let waiting = fixture.begin_keyed(&names[2]);
        fixture.observer.wait_for_locks("transactionid", 1).await;
        fixture.observer.wait_for_locks("transactionid", 0).await;
        assert!(matches!(fixture.begin_keyed("other").await, New(_)), "it does not wait for the retries");
        locking.run("COMMIT").await;
        assert_eq!(waiting.await, Replayed(id));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_without_a_key_do_not_wait_for_records() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::keyed(settings).await;
        let locking = make_record(&fixture, "locked").await;
        let locked = fixture.begin_keyed("locked");
        fixture.observer.wait_for_locks("transactionid", 1).await;
        for _ in 0..10 {
            let start = Instant::now();
            add(&fixture.store.repository, "plain").await.expect("added");
            assert!(start.elapsed() < PROMPT);
        }
        fixture.observer.wait_for_locks("transactionid", 1).await;
        locking.run("ROLLBACK").await;
        assert!(matches!(locked.await, New(_)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_a_locked_record_fails_alone_in_the_largest_batch() {
    let fixture = Fixture::keyed(PostgresSettings { max_waiting_creates: 2000, ..few_seconds() }).await;
    let names = names(1000);
    let _locking = make_record(&fixture, &names[0]).await;
    let results = add_together(&fixture, "first", &names).await;
    assert_eq!(results[0], Conflict);
    assert!(results[1..].iter().all(|result| matches!(result, New(_))), "{results:?}");
}
