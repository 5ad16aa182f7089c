//! The retention of a record, and its contents meanwhile.

use std::time::Duration;

use animal_store_adapters_postgres::PostgresSettings;

use crate::{
    fixture::Fixture,
    keyed::{Mismatch, New, Replayed, add_keyed, add_with_key},
    store::{in_both_modes, settings},
};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

const END: &str = "SELECT expires_at FROM idempotency_keys WHERE key_digest = sha256('a')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_records_are_replaced_and_others_in_the_batch_are_not() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::keyed(settings).await;
        let first = fixture.add_keyed_together(&NAMES).await;
        assert!(first.iter().all(|result| matches!(result, New(_))), "{first:?}");
        let expire = "UPDATE idempotency_keys SET expires_at = now() - interval '1 second'";
        fixture.observer.run(&format!("{expire} WHERE key_digest IN (sha256('a'), sha256('c'), sha256('f'))")).await;

        let second = fixture.add_keyed_together(&NAMES).await;
        for (index, name) in NAMES.iter().enumerate() {
            if ["a", "c", "f"].contains(name) {
                assert!(matches!(second[index], New(id) if id > first[index].id()), "{second:?}");
            } else {
                assert_eq!(second[index], Replayed(first[index].id()));
            }
        }
        let third = fixture.add_keyed_together(&NAMES).await;
        for (second, third) in second.iter().zip(third) {
            assert_eq!(third, Replayed(second.id()));
        }
        let mut names = fixture.names().await;
        names.sort();
        assert_eq!(names, ["a", "a", "b", "c", "c", "d", "e", "f", "f"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_expires_after_its_retention_and_no_replay_extends_it() {
    let retention = Duration::from_hours(30 * 24);
    let fixture = Fixture::keyed(PostgresSettings { idempotency_retention: retention, ..settings() }).await;
    let repository = &fixture.store.repository;
    let New(id) = add_keyed(repository, "a").await else { panic!("it is new") };
    let expected = format!("now() + interval '{} seconds'", retention.as_secs());
    let near = format!("expires_at BETWEEN {expected} - interval '1 minute' AND {expected}");
    assert_eq!(fixture.observer.count(&format!("idempotency_keys WHERE {near}")).await, 2);

    let end = fixture.observer.column(END).await;
    assert_eq!(add_keyed(repository, "a").await, Replayed(id));
    assert_eq!(add_with_key(repository, "a", "another").await, Mismatch);
    assert_eq!(fixture.observer.column(END).await, end);
    // Nor does a failure to add.
    fixture.observer.run("ALTER TABLE pets ADD CONSTRAINT no_more CHECK (false) NOT VALID").await;
    assert_eq!(add_keyed(repository, "a").await, Replayed(id));
    assert_eq!(fixture.observer.column(END).await, end);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_returns_the_pet_as_it_was_added() {
    let fixture = Fixture::keyed(settings()).await;
    let results = fixture.add_keyed_together(&["a", "b"]).await;
    fixture.observer.run("UPDATE pets SET name = 'changed', status = 3 WHERE name = 'a'").await;
    fixture.observer.run("DELETE FROM pets WHERE name = 'b'").await;
    let again: Vec<_> = results.iter().map(|result| Replayed(result.id())).collect();
    assert_eq!(fixture.add_keyed_together(&["a", "b"]).await, again);
    assert_eq!(fixture.names().await, ["changed"]);
}
