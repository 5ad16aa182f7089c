//! Records that another transaction has locked: requests for them wait within the timeout, and no others. Processes
//! that lock the same records never deadlock.

use std::collections::HashMap;

use animal_store_app::test_support::join_tasks;

use crate::prelude::*;

/// Adds these pets with their keys in one batch, while the first pet is held in PostgreSQL.
async fn add_together(fixture: &Fixture, names: &[String]) -> Vec<Keyed> {
    let first = fixture.hold("first").await;
    let batch: Vec<_> = names.iter().map(|name| fixture.add_keyed(name)).collect();
    fixture.release().await;
    assert!(matches!(first.await, New(_)));
    let results = join_all(batch).await;
    let end = "DROP TRIGGER spoil ON pets; DROP TABLE gate";
    fixture.observer.run(end).await;
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
    let settings = PostgresSettings {
        max_waiting_creates: 2000,
        timeout: Duration::from_secs(20),
        ..settings()
    };
    Fixture::in_both_modes_of(&settings, async |fixture| {
        let observer = &fixture.observer;
        let names: Vec<_> = (0..1000).map(|number| number.to_string()).collect();
        let locking = make_record(&fixture, "2").await;
        let start = Instant::now();
        let results = add_together(&fixture, &names).await;
        for (index, result) in results.iter().enumerate() {
            assert_eq!(matches!(result, New(_)), index != 2, "{results:?}");
        }
        assert_eq!(results[2], Conflict);
        assert!(start.elapsed() >= settings.timeout * 9 / 10);
        assert_eq!(observer.named("2").await, 0);

        locking.run("ROLLBACK").await;
        let id = fixture.add_keyed("2").await.id();
        let record = format!("FROM idempotency_keys WHERE pet_id = {id}");
        locking
            .run(&format!("BEGIN; SELECT {record} FOR UPDATE"))
            .await;
        let waiting = fixture.add_keyed("2");
        observer.wait_for_locks("transactionid", 1).await;
        observer.wait_for_locks("transactionid", 0).await;
        let other = fixture.add_keyed("other").await;
        assert!(matches!(other, New(_)), "it waits for the retries");
        locking.run("COMMIT").await;
        assert_eq!(waiting.await, Replayed(id));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_key_do_not_wait_for_records() {
    Fixture::in_both_modes(async |fixture| {
        let locking = make_record(&fixture, "locked").await;
        let locked = fixture.add_keyed("locked");
        fixture.observer.wait_for_locks("transactionid", 1).await;
        fixture.add("plain").await.expect("added");
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
            let set = "SET default_transaction_isolation";
            let name = database.name();
            database.sql(&format!("ALTER DATABASE {name} {set} = '{isolation}'"));
            let observer = SqlSession::of(&database).await;
            let mut stores = Vec::new();
            for _ in 0..3 {
                stores.push(Store::at(database.url(), settings.clone()).await);
            }
            for round in 0..3 {
                let mut names: Vec<_> = (0..100).map(|name| format!("{round} {name}")).collect();
                let mut adds = Vec::new();
                for store in &stores {
                    names.rotate_left(33);
                    names.reverse();
                    for name in names.clone() {
                        let adding = store.add_keyed(&name);
                        adds.push(async move { (name, adding.await) });
                    }
                }
                let mut by_name: HashMap<String, Vec<Keyed>> = HashMap::new();
                for (name, keyed) in join_tasks(adds).await {
                    by_name.entry(name).or_default().push(keyed);
                }
                for (name, mut results) in by_name {
                    let ids = format!("SELECT id FROM pets WHERE name = '{name}'");
                    let ids = observer.column(&ids).await;
                    let id = ids.join(" ").parse().expect("one id");
                    results.sort_by_key(|result| *result != New(id));
                    assert_eq!(results, [New(id), Replayed(id), Replayed(id)], "{name}");
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
    Fixture::in_both_modes(async |fixture| {
        let locking = SqlSession::of(&fixture.database).await;
        locking
            .run("BEGIN; LOCK TABLE pets IN EXCLUSIVE MODE")
            .await;
        assert_eq!(fixture.add_keyed("during").await, Failed(Timeout));
    })
    .await;
}
