//! How long a record is good for, and what it says meanwhile.

use std::time::Duration;

use animal_store_adapters_postgres::PostgresSettings;

use crate::{
    batches::Bench,
    keyed::{Again, Mismatch, New, ask, ask_as},
    store::{both_ways, settings},
};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

const END: &str = "SELECT expires_at FROM idempotency_keys WHERE key_digest = sha256('a')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_are_over_are_taken_anew_and_their_neighbours_are_not() {
    for settings in both_ways(&settings()) {
        let bench = Bench::keyed(settings).await;
        let first = bench.ask_together(&NAMES).await;
        assert!(first.iter().all(|answer| matches!(answer, New(_))), "{first:?}");
        let over = "UPDATE idempotency_keys SET expires_at = now() - interval '1 second'";
        bench.other.run(&format!("{over} WHERE key_digest IN (sha256('a'), sha256('c'), sha256('f'))")).await;

        let second = bench.ask_together(&NAMES).await;
        for (index, name) in NAMES.iter().enumerate() {
            if ["a", "c", "f"].contains(name) {
                assert!(matches!(second[index], New(id) if id > first[index].id()), "{second:?}");
            } else {
                assert_eq!(second[index], Again(first[index].id()));
            }
        }
        let third = bench.ask_together(&NAMES).await;
        for (second, third) in second.iter().zip(third) {
            assert_eq!(third, Again(second.id()));
        }
        let mut names = bench.names().await;
        names.sort();
        assert_eq!(names, ["a", "a", "b", "c", "c", "d", "e", "f", "f"]);
        // A key that was taken anew may belong to another animal.
        bench.other.run(over).await;
        assert!(matches!(ask_as(&bench.store.repository, "a", "another").await, New(_)));
        assert_eq!(ask(&bench.store.repository, "a").await, Mismatch);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_ends_when_its_retention_does_and_no_answer_prolongs_it() {
    for retention in [Duration::from_hours(24), Duration::from_hours(30 * 24)] {
        let bench = Bench::keyed(PostgresSettings { idempotency_retention: retention, ..settings() }).await;
        let repository = &bench.store.repository;
        let New(id) = ask(repository, "a").await else { panic!("it is new") };
        let expected = format!("now() + interval '{} seconds'", retention.as_secs());
        let near = format!("expires_at BETWEEN {expected} - interval '1 minute' AND {expected}");
        assert_eq!(bench.other.count(&format!("idempotency_keys WHERE {near}")).await, 2);

        let end = bench.other.column(END).await;
        assert_eq!(ask(repository, "a").await, Again(id));
        assert_eq!(ask_as(repository, "a", "another").await, Mismatch);
        assert_eq!(bench.other.column(END).await, end);
        // Nor does the failure of one who asks.
        bench.other.run("ALTER TABLE pets ADD CONSTRAINT no_more CHECK (false) NOT VALID").await;
        assert_eq!(ask(repository, "a").await, Again(id));
        assert_eq!(bench.other.column(END).await, end);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_of_the_animal_does_not_change_the_answer() {
    let bench = Bench::keyed(settings()).await;
    let answers = bench.ask_together(&["a", "b"]).await;
    bench.other.run("UPDATE pets SET name = 'changed', status = 3 WHERE name = 'a'").await;
    bench.other.run("DELETE FROM pets WHERE name = 'b'").await;
    let again: Vec<_> = answers.iter().map(|answer| Again(answer.id())).collect();
    assert_eq!(bench.ask_together(&["a", "b"]).await, again);
    assert_eq!(bench.names().await, ["changed"]);
}
