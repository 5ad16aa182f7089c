//! Records of idempotency keys: when they are stored, what they contain, and when they are replaced.

use crate::prelude::*;

/// The bad pet is refused alone and leaves no record, until `undo` removes the cause.
async fn fails_alone(fixture: &Fixture, undo: &str) {
    let observer = &fixture.observer;
    let delete = "DELETE FROM pets; DELETE FROM idempotency_keys";
    observer.run(delete).await;
    let results = fixture.add_keyed_together(&NAMES).await;
    for (name, result) in NAMES.iter().zip(&results) {
        match result {
            New(_) => assert_ne!(*name, "bad", "{undo}"),
            result => assert_eq!((*name, *result), ("bad", Failed(Unavailable)), "{undo}"),
        }
    }
    let record = "idempotency_keys WHERE key_digest = sha256('bad')";
    assert_eq!(observer.count(record).await, 0, "{undo}");
    assert_eq!(fixture.names().await.len(), NAMES.len() - 1, "{undo}");

    observer.run(undo).await;
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
    Fixture::in_both_modes(async |fixture| {
        const UNDO: &str = "DROP TRIGGER spoil ON pets";
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
        let trigger = "TRIGGER spoil BEFORE INSERT ON idempotency_keys";
        fixture.create_trigger(body, trigger).await;
        fails_alone(&fixture, "DROP TRIGGER spoil ON idempotency_keys").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_records_are_replaced_and_others_in_the_batch_are_not() {
    Fixture::in_both_modes(async |fixture| {
        let first = fixture.add_keyed_together(&NAMES).await;
        let expire = "UPDATE idempotency_keys SET expires_at = now() - interval '1 second'";
        let keys = "sha256('a'), sha256('c'), sha256('f')";
        let expire = format!("{expire} WHERE key_digest IN ({keys})");
        fixture.observer.run(&expire).await;

        let second = fixture.add_keyed_together(&NAMES).await;
        for ((name, first), second) in NAMES.iter().zip(first).zip(&second) {
            match second {
                New(id) => assert!(["a", "c", "f"].contains(name) && *id > first.id()),
                replayed => assert_eq!(*replayed, Replayed(first.id()), "{name}"),
            }
        }
        let third = second.iter().map(|result| Replayed(result.id()));
        let third: Vec<_> = third.collect();
        assert_eq!(fixture.add_keyed_together(&NAMES).await, third);
        let mut names = fixture.names().await;
        names.sort();
        assert_eq!(names, ["a", "a", "b", "bad", "c", "c", "d", "e", "f", "f"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_replay_extends_a_record() {
    let fixture = Fixture::new().await;
    let observer = &fixture.observer;
    let id = fixture.add_keyed("a").await.id();
    let end = "SELECT expires_at FROM idempotency_keys WHERE key_digest = sha256('a')";
    let before = observer.column(end).await;
    assert_eq!(fixture.add_keyed("a").await, Replayed(id));
    assert_eq!(fixture.add_with_key("a", "another").await, Mismatch);
    // Nor does a failure to add.
    let refuse = "ALTER TABLE pets ADD CONSTRAINT no_more CHECK (false) NOT VALID";
    observer.run(refuse).await;
    assert_eq!(fixture.add_keyed("a").await, Replayed(id));
    assert_eq!(observer.column(end).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_returns_the_pet_as_it_was_added() {
    let fixture = Fixture::new().await;
    let counts = || ["create", "create_with_key"].map(|kind| fixture.requests_and_batches(kind));
    let [plain, [requests, batches]] = counts();
    let results = fixture.add_keyed_together(&["a", "b"]).await;
    // With the pet before them.
    assert_eq!(counts(), [plain, [requests + 3, batches + 2]]);
    let change = "UPDATE pets SET name = 'changed', status = 3 WHERE name = 'a';
        DELETE FROM pets WHERE name = 'b'";
    fixture.observer.run(change).await;
    let again: Vec<_> = results.iter().map(|result| Replayed(result.id())).collect();
    assert_eq!(fixture.add_keyed_together(&["a", "b"]).await, again);
    assert_eq!(fixture.names().await, ["changed"]);
}
