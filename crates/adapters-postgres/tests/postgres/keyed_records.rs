//! Records of idempotency keys: when they are stored, what they contain, and when they are replaced.

use std::time::Duration;

use animal_store_adapters_postgres::PostgresSettings;

use crate::{
    fixture::{Fixture, NAMES, raise},
    keyed::{Failed, Mismatch, New, Replayed, add_keyed, add_with_key},
    outcomes::Unavailable,
    store::{in_both_modes, settings},
};

/// The bad pet is refused alone and leaves no record, until `undo` removes the cause.
async fn fails_alone(fixture: &Fixture, undo: &str) {
    fixture
        .observer
        .run("DELETE FROM pets; DELETE FROM idempotency_keys")
        .await;
    let results = fixture.add_keyed_together(&NAMES).await;
    for (name, result) in NAMES.iter().zip(&results) {
        assert_eq!(
            matches!(result, New(_)),
            *name != "bad",
            "{undo}: {results:?}"
        );
    }
    assert_eq!(results[2], Failed(Unavailable), "{undo}");
    let record = "idempotency_keys WHERE key_digest = sha256('bad')";
    assert_eq!(fixture.observer.count(record).await, 0, "{undo}");
    assert_eq!(fixture.names().await.len(), NAMES.len() - 1, "{undo}");

    fixture.observer.run(undo).await;
    let again = fixture.add_keyed_together(&NAMES).await;
    let expected = results.into_iter().map(|result| match result {
        New(id) => Replayed(id),
        _ => New(again[2].id()),
    });
    assert_eq!(again, expected.collect::<Vec<_>>(), "{undo}");
    assert_eq!(fixture.names().await.len(), NAMES.len(), "{undo}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pet_that_is_refused_or_whose_record_is_suppressed_leaves_no_record_and_fails_alone() {
    in_both_modes(&settings(), async |settings| {
        const UNDO: &str = "DROP TRIGGER spoil ON pets";
        let fixture = Fixture::keyed(settings).await;
        for refused in [
            raise("22000", "no"),
            raise("23514", "no"),
            "IF NEW.name = 'bad' THEN RETURN NULL; END IF".to_owned(),
            "IF NEW.name = 'bad' THEN NEW.id := NEW.id + 1000000; END IF".to_owned(),
        ] {
            fixture.trigger(&refused).await;
            fails_alone(&fixture, UNDO).await;
        }
        fixture.trigger_at_commit(&raise("23514", "no")).await;
        fails_alone(&fixture, UNDO).await;
        // The trigger suppresses the record.
        let body = "IF NEW.key_digest = sha256('bad') THEN RETURN NULL; END IF";
        fixture
            .create_trigger(body, "TRIGGER spoil BEFORE INSERT ON idempotency_keys")
            .await;
        fails_alone(&fixture, "DROP TRIGGER spoil ON idempotency_keys").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_records_are_replaced_and_others_in_the_batch_are_not() {
    Fixture::keyed_in_both_modes(async |fixture| {
        let first = fixture.add_keyed_together(&NAMES).await;
        let expire = "UPDATE idempotency_keys SET expires_at = now() - interval '1 second'";
        fixture
            .observer
            .run(&format!(
                "{expire} WHERE key_digest IN (sha256('a'), sha256('c'), sha256('f'))"
            ))
            .await;

        let second = fixture.add_keyed_together(&NAMES).await;
        for ((name, first), second) in NAMES.iter().zip(&first).zip(&second) {
            if ["a", "c", "f"].contains(name) {
                assert!(
                    matches!(second, New(id) if *id > first.id()),
                    "{name}: {second:?}"
                );
            } else {
                assert_eq!(*second, Replayed(first.id()), "{name}");
            }
        }
        let third = second
            .iter()
            .map(|result| Replayed(result.id()))
            .collect::<Vec<_>>();
        assert_eq!(fixture.add_keyed_together(&NAMES).await, third);
        let mut names = fixture.names().await;
        names.sort();
        assert_eq!(names, ["a", "a", "b", "bad", "c", "c", "d", "e", "f", "f"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_expires_after_its_retention_and_no_replay_extends_it() {
    let retention = Duration::from_hours(30 * 24);
    let fixture = Fixture::keyed(PostgresSettings {
        idempotency_retention: retention,
        ..settings()
    })
    .await;
    let repository = &fixture.store.repository;
    let id = add_keyed(repository, "a").await.id();
    let expected = format!("now() + interval '{} seconds'", retention.as_secs());
    let near = format!("expires_at BETWEEN {expected} - interval '1 minute' AND {expected}");
    let records = format!("idempotency_keys WHERE {near}");
    assert_eq!(fixture.observer.count(&records).await, 2);

    let end = async || {
        fixture
            .observer
            .column("SELECT expires_at FROM idempotency_keys WHERE key_digest = sha256('a')")
            .await
    };
    let before = end().await;
    assert_eq!(add_keyed(repository, "a").await, Replayed(id));
    assert_eq!(add_with_key(repository, "a", "another").await, Mismatch);
    // Nor does a failure to add.
    fixture
        .observer
        .run("ALTER TABLE pets ADD CONSTRAINT no_more CHECK (false) NOT VALID")
        .await;
    assert_eq!(add_keyed(repository, "a").await, Replayed(id));
    assert_eq!(end().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_returns_the_pet_as_it_was_added() {
    let fixture = Fixture::keyed(settings()).await;
    let results = fixture.add_keyed_together(&["a", "b"]).await;
    fixture
        .observer
        .run("UPDATE pets SET name = 'changed', status = 3 WHERE name = 'a'")
        .await;
    fixture
        .observer
        .run("DELETE FROM pets WHERE name = 'b'")
        .await;
    let again: Vec<_> = results.iter().map(|result| Replayed(result.id())).collect();
    assert_eq!(fixture.add_keyed_together(&["a", "b"]).await, again);
    assert_eq!(fixture.names().await, ["changed"]);
}
