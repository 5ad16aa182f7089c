//! Pets that PostgreSQL refuses: neither they nor the records of their keys are stored, and the others of the batch
//! are.

use crate::{
    fixture::Fixture,
    keyed::{Failed, Keyed, New, Replayed},
    outcomes::Unavailable,
    store::{in_both_modes, settings},
};

const NAMES: [&str; 7] = ["a", "b", "bad", "c", "d", "e", "f"];

fn raise(code: &str) -> String {
    format!("IF NEW.name = 'bad' THEN RAISE 'no' USING ERRCODE = '{code}'; END IF")
}

fn ids(results: &[Keyed]) -> Vec<i64> {
    results.iter().filter_map(|result| if let New(id) | Replayed(id) = result { Some(*id) } else { None }).collect()
}

/// The bad pet is refused alone, until `undo` removes the cause.
async fn fails_alone(fixture: &Fixture, undo: &str) {
    fixture.observer.run("DELETE FROM pets; DELETE FROM idempotency_keys").await;
    let results = fixture.add_keyed_together(&NAMES).await;
    for (name, result) in NAMES.iter().zip(&results) {
        assert_eq!(matches!(result, New(_)), *name != "bad", "{undo}: {results:?}");
    }
    assert_eq!(results[2], Failed(Unavailable), "{undo}");
    assert!(
        fixture.observer.count("idempotency_keys WHERE key_digest = sha256('bad')").await == 0,
        "{undo}: its key is free"
    );
    assert_eq!(fixture.observer.count("pets WHERE name <> 'first'").await, NAMES.len() - 1, "{undo}");

    fixture.observer.run(undo).await;
    let again = fixture.add_keyed_together(&NAMES).await;
    assert!(matches!(again[2], New(_)), "{undo}: {again:?}");
    let others: Vec<_> = again.iter().copied().filter(|result| matches!(result, Replayed(_))).collect();
    assert_eq!(ids(&others), ids(&results), "{undo}: they are replayed");
    assert_eq!(fixture.observer.count("pets WHERE name <> 'first'").await, NAMES.len(), "{undo}");
}

const UNDO: &str = "DROP TRIGGER spoil ON pets";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pet_that_is_refused_or_whose_record_is_suppressed_leaves_no_record_and_fails_alone() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::keyed(settings).await;
        for refused in [
            raise("22000"),
            raise("23514"),
            "IF NEW.name = 'bad' THEN RETURN NULL; END IF".to_owned(),
            "IF NEW.name = 'bad' THEN NEW.id := NEW.id + 1000000; END IF".to_owned(),
        ] {
            fixture.trigger(&refused).await;
            fails_alone(&fixture, UNDO).await;
        }
        fixture.trigger_at_commit(&raise("23514")).await;
        fails_alone(&fixture, UNDO).await;
        // The trigger suppresses the record.
        let body = "IF NEW.key_digest = sha256('bad') THEN RETURN NULL; END IF";
        fixture.create_trigger(body, "TRIGGER spoil BEFORE INSERT ON idempotency_keys").await;
        fails_alone(&fixture, "DROP TRIGGER spoil ON idempotency_keys").await;
    })
    .await;
}
