//! Batches that PostgreSQL refuses: a row that spoils one goes alone, whatever else is wrong goes for all of them.

use animal_store_app::ports::{AddPetError, StorageError};

use crate::{
    batches::{Added, Bench},
    calls::{Answered, Deadline, Outcome, PATIENCE, Unavailable, Unknown, comes_to, of_add, reason},
    store::{both_ways, settings},
};

const NAMES: [&str; 7] = ["a", "b", "bad", "c", "d", "e", "f"];

fn outcomes(added: &[Added]) -> Vec<Outcome> {
    added.iter().map(of_add).collect()
}

fn all_but(bad: &[&str], outcome: Outcome) -> Vec<Outcome> {
    NAMES.iter().map(|name| if bad.contains(name) { outcome } else { Answered }).collect()
}

/// Only rows that PostgreSQL refuses are left out, each with a reason.
async fn spoils_itself_alone(bench: &Bench, text: &str) {
    let added = bench.add_together(&NAMES).await;
    assert_eq!(outcomes(&added), all_but(&["bad"], Unavailable));
    let Err(AddPetError::NotStored(StorageError::Unavailable(cause))) = &added[2] else { panic!("{added:?}") };
    let reason = reason(&**cause);
    assert!(reason.contains(text), "{reason}");
    assert_eq!(bench.names().await, ["a", "b", "c", "d", "e", "f"]);
    for (name, added) in NAMES.iter().zip(added) {
        if let Ok(pet) = added {
            let id = bench.other.column(&format!("SELECT id FROM pets WHERE name = '{name}'")).await;
            assert_eq!(id, [pet.id().get().to_string()]);
        }
    }
}

/// Nothing of the batch is stored; the next one is.
async fn spoils_all(bench: &Bench, outcome: Outcome) {
    let added = bench.add_together(&NAMES).await;
    assert_eq!(outcomes(&added), [outcome; NAMES.len()]);
    assert_eq!(bench.names().await, [""; 0]);
    // A connection that did not say what became of a commit is replaced.
    comes_to(&bench.store.repository, Answered, PATIENCE).await;
    assert_eq!(outcomes(&bench.add_together(&["later", "still later"]).await), [Answered; 2]);
    bench.other.run("DELETE FROM pets WHERE name LIKE '%later'").await;
}

/// For one row, in a trigger.
fn raise(code: &str, message: &str) -> String {
    format!("IF NEW.name = 'bad' THEN RAISE '{message}' USING ERRCODE = '{code}'; END IF")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_breaks_a_constraint_spoils_itself_alone() {
    for settings in both_ways(&settings()) {
        let bench = Bench::with(settings).await;
        bench.other.run("ALTER TABLE pets ADD CONSTRAINT no_bad_ones CHECK (name <> 'bad')").await;
        spoils_itself_alone(&bench, "SQLSTATE 23514, table pets, constraint no_bad_ones").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_a_bad_value_spoils_itself_alone() {
    let bench = Bench::new().await;
    bench.trigger(&raise("22000", "a bad value")).await;
    spoils_itself_alone(&bench, "a bad value (SQLSTATE 22000)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_is_refused_at_the_commit_spoils_itself_alone() {
    for settings in both_ways(&settings()) {
        let bench = Bench::with(settings).await;
        bench.trigger_at_commit(&raise("23514", "at commit")).await;
        spoils_itself_alone(&bench, "at commit (SQLSTATE 23514)").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_every_row_is_refused_none_is_stored() {
    let bench = Bench::new().await;
    bench.other.run("ALTER TABLE pets ADD CHECK (name IN ('Rex', 'first', 'later', 'still later'))").await;
    spoils_all(&bench, Unavailable).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_failure_spoils_all() {
    // A full disk is said by 53100; P0001 is what a trigger says that says nothing else; 40003 is that nobody knows.
    for (code, outcome) in [("53100", Unavailable), ("P0001", Unavailable), ("42501", Unavailable), ("40003", Unknown)]
    {
        let bench = Bench::new().await;
        bench.trigger(&raise(code, "all")).await;
        spoils_all(&bench, outcome).await;
        bench.trigger_at_commit(&raise(code, "all")).await;
        spoils_all(&bench, outcome).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_is_cancelled_is_late() {
    let bench = Bench::new().await;
    bench
        .trigger("IF NEW.name = 'bad' THEN PERFORM pg_cancel_backend(pg_backend_pid()); PERFORM pg_sleep(9); END IF")
        .await;
    spoils_all(&bench, Deadline).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_others_were_in_the_way_a_batch_is_tried_once_more() {
    for settings in both_ways(&settings()) {
        let bench = Bench::with(settings).await;
        for code in ["40001", "40P01"] {
            // A sequence counts also what is rolled back.
            bench.other.run("DROP SEQUENCE IF EXISTS attempts; CREATE SEQUENCE attempts").await;
            bench
                .trigger(&raise(code, "in the way").replace(" THEN", " AND nextval('attempts') IN (1, 3, 4) THEN"))
                .await;
            assert_eq!(outcomes(&bench.add_together(&NAMES).await), [Answered; NAMES.len()]);
            assert_eq!(bench.names().await, NAMES);
            assert_eq!(bench.other.column("SELECT last_value FROM attempts").await, ["2"]);

            bench.other.run("DELETE FROM pets").await;
            spoils_all(&bench, Unavailable).await;
            assert_eq!(bench.other.column("SELECT last_value FROM attempts").await, ["4"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_a_trigger_keeps_out_is_not_stored_and_its_neighbours_are() {
    let bench = Bench::new().await;
    bench.trigger("IF NEW.name IN ('bad', 'f') THEN RETURN NULL; END IF").await;
    assert_eq!(outcomes(&bench.add_together(&NAMES).await), all_but(&["bad", "f"], Unavailable));
    assert_eq!(bench.names().await, ["a", "b", "c", "d", "e"]);
}

/// It was stored, and nobody knows as what.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_trigger_gives_a_row_another_id_nothing_is_said_about_it() {
    let bench = Bench::new().await;
    bench.trigger("IF NEW.name = 'bad' THEN NEW.id := 1000000; END IF").await;
    let added = bench.add_together(&NAMES).await;
    assert_eq!(of_add(&added[2]), Unknown);
    assert_eq!(bench.other.named("bad").await, 1);
}
