//! Many adds at once over a link that is cut again and again.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use animal_store_adapters_postgres::PgPetRepository;
use animal_store_app::ports::AddPetError;
use animal_store_domain::Pet;

use crate::{
    calls::{Answered, PATIENCE, Unavailable, a_moment, add, comes_to, of_add},
    store::{Linked, both_ways, settings},
};

const ADDERS: usize = 64;
const CUTS: usize = 6;

/// More than can be answered: the storm is over.
const ENOUGH: usize = 1_000_000_000;

type Outcomes = HashMap<String, Result<Pet, AddPetError>>;

/// Counts those that were answered; ends after the last cut.
async fn add_over_and_over(repository: Arc<PgPetRepository>, adder: usize, answered: Arc<AtomicUsize>) -> Outcomes {
    let mut outcomes = Outcomes::new();
    while answered.load(Ordering::Relaxed) < ENOUGH {
        let name = format!("{adder}-{}", outcomes.len());
        let outcome = add(&repository, &name).await;
        match of_add(&outcome) {
            Answered => drop(answered.fetch_add(1, Ordering::Relaxed)),
            Unavailable => a_moment().await,
            _ => {}
        }
        outcomes.insert(name, outcome);
    }
    outcomes
}

/// Cuts the link while adds are under way, and returns the processes of the server that were cut off.
async fn cut_again_and_again(linked: &Linked, answered: &AtomicUsize) -> Vec<String> {
    let mut backends = Vec::new();
    for cut in 0..CUTS {
        let before = answered.load(Ordering::Relaxed);
        let start = Instant::now();
        while answered.load(Ordering::Relaxed) < before + 1 + cut * 40 {
            assert!(start.elapsed() < PATIENCE, "nothing is answered any more");
            a_moment().await;
        }
        backends.extend(linked.other.backends().await);
        linked.link.cut();
    }
    answered.fetch_add(ENOUGH, Ordering::Relaxed);
    backends
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_storm_of_cuts_every_promise_is_kept() {
    for settings in both_ways(&settings()) {
        let linked = Linked::new(settings).await;
        let answered = Arc::new(AtomicUsize::new(0));
        let adders: Vec<_> = (0..ADDERS)
            .map(|adder| add_over_and_over(Arc::clone(&linked.store.repository), adder, Arc::clone(&answered)))
            .map(tokio::spawn)
            .collect();
        let backends = cut_again_and_again(&linked, &answered).await;
        let mut outcomes = Outcomes::new();
        for adder in adders {
            outcomes.extend(adder.await.expect("it ends"));
        }
        // What was cut off is done, or never will be.
        linked.other.wait_for_the_end_of(&backends).await;
        comes_to(&linked.store.repository, Answered, PATIENCE).await;
        check(&linked, &outcomes).await;
    }
}

async fn check(linked: &Linked, outcomes: &Outcomes) {
    let mut stored: HashMap<&str, Vec<&str>> = HashMap::new();
    let rows = linked.other.column("SELECT id || ' ' || name FROM pets WHERE name <> 'Rex'").await;
    for row in &rows {
        let (id, name) = row.split_once(' ').expect("two");
        stored.entry(name).or_default().push(id);
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (name, outcome) in outcomes {
        let ids = stored.remove(name.as_str()).unwrap_or_default();
        match outcome {
            Ok(pet) => assert_eq!(ids, [pet.id().get().to_string()], "{name}"),
            Err(AddPetError::OutcomeUnknown(_)) => assert!(ids.len() <= 1, "{name}: {ids:?}"),
            Err(_) => assert_eq!(ids, [""; 0], "{name}"),
        }
        *counts.entry(format!("{:?}, stored {}", of_add(outcome), ids.len())).or_default() += 1;
    }
    assert!(stored.is_empty(), "nobody asked for these: {stored:?}");
    for expected in ["Answered, stored 1", "Unavailable, stored 0"] {
        assert!(counts.contains_key(expected), "{counts:?}");
    }
}
