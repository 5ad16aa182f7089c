//! Animals that PostgreSQL refuses: neither they nor records of their keys stay, and their neighbours do.

use crate::{
    batches::Bench,
    calls::Unavailable,
    keyed::{Again, Failed, Keyed, New},
    store::{both_ways, settings},
};

const NAMES: [&str; 7] = ["a", "b", "bad", "c", "d", "e", "f"];

fn raise(code: &str) -> String {
    format!("IF NEW.name = 'bad' THEN RAISE 'no' USING ERRCODE = '{code}'; END IF")
}

fn ids(answers: &[Keyed]) -> Vec<i64> {
    answers.iter().filter_map(|answer| if let New(id) | Again(id) = answer { Some(*id) } else { None }).collect()
}

/// The bad one is refused alone, until this undoes what it was refused for.
async fn spoils_itself_alone(bench: &Bench, undo: &str) {
    bench.other.run("DELETE FROM pets; DELETE FROM idempotency_keys").await;
    let answers = bench.ask_together(&NAMES).await;
    for (name, answer) in NAMES.iter().zip(&answers) {
        assert_eq!(matches!(answer, New(_)), *name != "bad", "{undo}: {answers:?}");
    }
    assert_eq!(answers[2], Failed(Unavailable), "{undo}");
    assert!(!bench.has_record("bad").await, "{undo}: its key is free");
    assert_eq!(bench.other.count("pets WHERE name <> 'first'").await, NAMES.len() - 1, "{undo}");

    bench.other.run(undo).await;
    let again = bench.ask_together(&NAMES).await;
    assert!(matches!(again[2], New(_)), "{undo}: {again:?}");
    let others: Vec<_> = again.iter().copied().filter(|answer| matches!(answer, Again(_))).collect();
    assert_eq!(ids(&others), ids(&answers), "{undo}: they are told the same");
    assert_eq!(bench.other.count("pets WHERE name <> 'first'").await, NAMES.len(), "{undo}");
}

const UNDO: &str = "DROP TRIGGER spoil ON pets";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_animal_that_is_refused_leaves_no_record_and_spoils_nobody_elses() {
    for settings in both_ways(&settings()) {
        let bench = Bench::keyed(settings).await;
        for refused in [
            raise("22000"),
            raise("23514"),
            "IF NEW.name = 'bad' THEN RETURN NULL; END IF".to_owned(),
            "IF NEW.name = 'bad' THEN NEW.id := NEW.id + 1000000; END IF".to_owned(),
        ] {
            bench.trigger(&refused).await;
            spoils_itself_alone(&bench, UNDO).await;
        }
        bench.trigger_at_commit(&raise("23514")).await;
        spoils_itself_alone(&bench, UNDO).await;
        bench.other.run("ALTER TABLE pets ADD CONSTRAINT no_bad_ones CHECK (name <> 'bad') NOT VALID").await;
        spoils_itself_alone(&bench, "ALTER TABLE pets DROP CONSTRAINT no_bad_ones").await;
    }
}

/// Where the record is kept out, so is the animal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_a_trigger_keeps_out_spoils_itself_alone() {
    for settings in both_ways(&settings()) {
        let bench = Bench::keyed(settings).await;
        let body = "BEGIN IF NEW.key_digest = sha256('bad') THEN RETURN NULL; END IF; RETURN NEW; END";
        bench.other.run(&format!("CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")).await;
        let trigger = "BEFORE INSERT ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION spoil()";
        bench.other.run(&format!("CREATE TRIGGER spoil {trigger}")).await;
        spoils_itself_alone(&bench, "DROP TRIGGER spoil ON idempotency_keys").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_another_failure_nothing_of_the_batch_stays() {
    for settings in both_ways(&settings()) {
        let bench = Bench::keyed(settings).await;
        let before = bench.other.column("SELECT pet_id FROM idempotency_keys").await.len();
        for late in [false, true] {
            if late {
                bench.trigger_at_commit(&raise("P0001")).await;
            } else {
                bench.trigger(&raise("P0001")).await;
            }
            assert_eq!(bench.ask_together(&NAMES).await, [Failed(Unavailable); NAMES.len()]);
            assert_eq!(bench.names().await, [""; 0]);
            // The first one was a batch of its own.
            assert_eq!(bench.other.count("idempotency_keys").await, before + 1);
        }
        bench.other.run(UNDO).await;
        assert!(bench.ask_together(&NAMES).await.iter().all(|answer| matches!(answer, New(_))));
    }
}
