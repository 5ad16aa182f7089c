//! Records that another transaction has locked: requests for them wait within the timeout, and no others. Processes
//! that lock the same records never deadlock.

use std::{collections::HashMap, sync::Arc, time::Instant};

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::test_support::join_tasks;
use animal_store_test_servers::PgDatabase;
use futures_util::future::join_all;

use crate::{
    fixture::Fixture,
    keyed::{Conflict, Failed, Keyed, New, Replayed, add_keyed},
    outcomes::{Timeout, add},
    sql_session::SqlSession,
    store::{Store, few_seconds, in_both_modes, settings},
};

/// Adds these pets with their keys in one batch, while the insert of the first pet is held in PostgreSQL. Unlike the
/// wait for a lock, it has the whole timeout of a statement.
async fn add_together(fixture: &Fixture, names: &[String]) -> Vec<Keyed> {
    fixture
        .observer
        .run("CREATE TABLE gate (); INSERT INTO gate DEFAULT VALUES")
        .await;
    let is_held = "NEW.name = 'first' AND EXISTS (SELECT FROM gate)";
    fixture
        .trigger(&format!(
            "WHILE {is_held} LOOP PERFORM pg_sleep(0.01); END LOOP"
        ))
        .await;
    let first = fixture.begin_keyed("first");
    let sleeping = "pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    fixture.observer.wait_for_rows(sleeping, 1).await;
    let batch: Vec<_> = names.iter().map(|name| fixture.begin_keyed(name)).collect();
    fixture.observer.run("DELETE FROM gate").await;
    assert!(matches!(first.await, New(_)));
    let results = join_all(batch).await;
    fixture
        .observer
        .run("DROP TRIGGER spoil ON pets; DROP TABLE gate")
        .await;
    results
}

/// A transaction that has inserted a record of this key and has not ended.
async fn make_record(fixture: &Fixture, name: &str) -> SqlSession {
    let session = SqlSession::of(&fixture.database).await;
    let row =
        format!("('shop', sha256('{name}'), sha256('another'), 1, now() + interval '1 hour')");
    session
        .run(&format!("BEGIN; INSERT INTO idempotency_keys VALUES {row}"))
        .await;
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_largest_batch_a_request_for_a_locked_record_waits_alone_and_conflicts_after_its_timeout()
 {
    in_both_modes(
        &PostgresSettings {
            max_waiting_creates: 2000,
            ..few_seconds()
        },
        async |settings| {
            let timeout = settings.timeout;
            let fixture = Fixture::keyed(settings).await;
            let names: Vec<_> = (0..1000).map(|number| number.to_string()).collect();
            let locking = make_record(&fixture, &names[2]).await;
            let start = Instant::now();
            let results = add_together(&fixture, &names).await;
            for (index, result) in results.iter().enumerate() {
                assert_eq!(matches!(result, New(_)), index != 2, "{results:?}");
            }
            assert!(
                results[2] == Conflict && start.elapsed() >= timeout * 9 / 10,
                "{:?}",
                start.elapsed()
            );
            assert_eq!(fixture.observer.named(&names[2]).await, 0);
            locking.run("ROLLBACK").await;
            let New(id) = add_keyed(&fixture.store.repository, &names[2]).await else {
                panic!("it is new")
            };

            locking
                .run(&format!(
                    "BEGIN; SELECT FROM idempotency_keys WHERE pet_id = {id} FOR UPDATE"
                ))
                .await;
            let waiting = fixture.begin_keyed(&names[2]);
            fixture.observer.wait_for_locks("transactionid", 1).await;
            fixture.observer.wait_for_locks("transactionid", 0).await;
            assert!(
                matches!(fixture.begin_keyed("other").await, New(_)),
                "it does not wait for the retries"
            );
            locking.run("COMMIT").await;
            assert_eq!(waiting.await, Replayed(id));
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_key_do_not_wait_for_records() {
    Fixture::keyed_in_both_modes(async |fixture| {
        let locking = make_record(&fixture, "locked").await;
        let locked = fixture.begin_keyed("locked");
        fixture.observer.wait_for_locks("transactionid", 1).await;
        add(&fixture.store.repository, "plain")
            .await
            .expect("added");
        fixture.observer.wait_for_locks("transactionid", 1).await;
        locking.run("ROLLBACK").await;
        assert!(matches!(locked.await, New(_)));
    })
    .await;
}

/// The database may have a default isolation for other programs. Each process adds all names in another order.
#[tokio::test(flavor = "multi_thread")]
async fn batches_of_the_same_keys_never_deadlock_in_any_order_and_with_any_default_isolation() {
    for isolation in ["read committed", "repeatable read", "serializable"] {
        in_both_modes(&settings(), async |settings| {
            let database = PgDatabase::new();
            let set = format!(
                "ALTER DATABASE {} SET default_transaction_isolation",
                database.name()
            );
            database.sql(&format!("{set} = '{isolation}'"));
            let observer = SqlSession::of(&database).await;
            let mut stores = Vec::new();
            let mut names = (0..100).map(|name| name.to_string()).collect::<Vec<_>>();
            for _ in 0..3 {
                stores.push(Store::at(database.url(), settings.clone()).await);
            }
            for _ in 0..3 {
                let adds = stores.iter().flat_map(|store| {
                    names.rotate_left(33);
                    names.reverse();
                    names.clone().into_iter().map(|name| {
                        let repository = Arc::clone(&store.repository);
                        async move { (add_keyed(&repository, &name).await, name) }
                    })
                });
                let mut by_name: HashMap<String, Vec<Keyed>> = HashMap::new();
                for (keyed, name) in join_tasks(adds.collect::<Vec<_>>()).await {
                    by_name.entry(name).or_default().push(keyed);
                }
                for (name, mut results) in by_name {
                    let ids = observer
                        .column(&format!("SELECT id FROM pets WHERE name = '{name}'"))
                        .await;
                    let id = ids.join(" ").parse().expect("one id");
                    results.sort_by_key(|result| *result != New(id));
                    assert_eq!(results, [New(id), Replayed(id), Replayed(id)], "{name}");
                }
                for name in &mut names {
                    name.push('x');
                }
            }
            // The server counts deadlocks when the processes have disconnected.
            drop(stores);
            observer.wait_for_backends(0).await;
            let deadlocks =
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
            assert_eq!(observer.column(deadlocks).await, ["0"]);
        })
        .await;
    }
}

/// The table is no earlier request with the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_for_a_locked_table_times_out_without_a_conflict() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings).await;
        assert!(matches!(fixture.begin_keyed("before").await, New(_)));
        let locking = SqlSession::of(&fixture.database).await;
        locking
            .run("BEGIN; LOCK TABLE pets IN EXCLUSIVE MODE")
            .await;
        assert_eq!(fixture.begin_keyed("during").await, Failed(Timeout));
    })
    .await;
}
