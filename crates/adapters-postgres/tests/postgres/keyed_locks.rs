//! Records that somebody else has locked: whoever asks for one of them is refused, and nobody else is.

use std::time::{Duration, Instant};

use animal_store_adapters_postgres::PostgresSettings;

use crate::{
    batches::Bench,
    calls::{AT_ONCE, Unavailable, add},
    keyed::{Again, Failed, New, ask, in_order},
    session::Session,
    store::{both_ways, settings},
};

const TIMEOUT: Duration = Duration::from_secs(2);

fn impatient() -> PostgresSettings {
    PostgresSettings { timeout: TIMEOUT, ..settings() }
}

/// A transaction that has not yet ended has made a record of this key.
async fn make_record(bench: &Bench, name: &str) -> Session {
    let session = Session::of(&bench.database).await;
    let row = format!("('shop', sha256('{name}'), sha256('another'), 1, now() + interval '1 hour')");
    session.run(&format!("BEGIN; INSERT INTO idempotency_keys VALUES {row}")).await;
    session
}

/// Names of which the first comes first in a batch.
fn names(count: usize) -> Vec<String> {
    in_order((0..count).map(|number| number.to_string()).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_a_record_that_is_locked_is_late_alone() {
    for settings in both_ways(&impatient()) {
        let bench = Bench::keyed(settings).await;
        let names = names(8);
        let locking = make_record(&bench, &names[2]).await;
        let answers = bench.ask_together(&names).await;
        for (index, answer) in answers.iter().enumerate() {
            assert_eq!(matches!(answer, New(_)), index != 2, "{answers:?}");
        }
        assert_eq!(answers[2], Failed(Unavailable));
        assert_eq!(bench.other.named(&names[2]).await, 0);
        locking.run("ROLLBACK").await;
        let New(id) = ask(&bench.store.repository, &names[2]).await else { panic!("it is new") };

        locking.run(&format!("BEGIN; SELECT FROM idempotency_keys WHERE pet_id = {id} FOR UPDATE")).await;
        let answers = bench.ask_together(&names).await;
        assert_eq!(answers[2], Failed(Unavailable));
        assert!(answers.iter().enumerate().all(|(index, answer)| matches!(answer, Again(_)) == (index != 2)));
        locking.run("COMMIT").await;
        assert_eq!(ask(&bench.store.repository, &names[2]).await, Again(id));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_without_a_key_waits_for_a_record() {
    for settings in both_ways(&settings()) {
        let bench = Bench::keyed(settings).await;
        let locking = make_record(&bench, "locked").await;
        let locked = bench.begin_asking("locked");
        bench.other.wait_for_locks("transactionid", 1).await;
        for _ in 0..10 {
            let start = Instant::now();
            add(&bench.store.repository, "plain").await.expect("an animal");
            assert!(start.elapsed() < AT_ONCE);
        }
        bench.other.wait_for_locks("transactionid", 1).await;
        locking.run("ROLLBACK").await;
        assert!(matches!(locked.await, New(_)));
    }
}

/// However large the batch is, and wherever in it the record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_late_in_a_large_batch_is_late_alone() {
    let bench = Bench::keyed(PostgresSettings { max_waiting_creates: 2000, ..impatient() }).await;
    let names = names(1000);
    let _locking = make_record(&bench, &names[0]).await;
    let answers = bench.ask_together(&names).await;
    assert_eq!(answers[0], Failed(Unavailable));
    let failed = answers.iter().filter(|answer| !matches!(answer, New(_))).count();
    assert_eq!(failed, 1, "of {}", answers.len());
}
