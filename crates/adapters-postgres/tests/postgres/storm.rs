//! Many adds at the same time over connections that are cut again and again.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use animal_store_adapters_postgres::PgPetRepository;
use animal_store_app::ports::{AddPetError, StoreFailure};
use animal_store_domain::Pet;

use crate::{
    outcomes::{Success, TEST_TIMEOUT, Unavailable, a_moment, add, add_outcome, eventually, wait_for_outcome},
    store::{ProxiedStore, in_both_modes, settings},
};

const ADDERS: usize = 32;
const CUTS: usize = 6;

type Outcomes = HashMap<String, Result<Pet, AddPetError>>;

/// Adds until the test stops it, and counts the outcomes.
async fn add_continuously(repository: Arc<PgPetRepository>, adder: usize, counts: Arc<Counts>) -> Outcomes {
    let mut outcomes = Outcomes::new();
    while !counts.stopped.load(Ordering::Relaxed) {
        let name = format!("{adder}-{}", outcomes.len());
        let outcome = add(&repository, &name).await;
        match add_outcome(&outcome) {
            Success => drop(counts.successes.fetch_add(1, Ordering::Relaxed)),
            Unavailable => {
                counts.unavailable.fetch_add(1, Ordering::Relaxed);
                a_moment().await;
            }
            _ => {}
        }
        outcomes.insert(name, outcome);
    }
    outcomes
}

#[derive(Default)]
struct Counts {
    successes: AtomicUsize,
    unavailable: AtomicUsize,
    stopped: AtomicBool,
}

/// Waits until a count has grown.
async fn wait_for_growth(count: &AtomicUsize, by: usize) {
    let before = count.load(Ordering::Relaxed);
    eventually("more outcomes", async || count.load(Ordering::Relaxed) >= before + by).await;
}

/// Cuts the connections while adds are in flight, and returns the backends that were cut off.
async fn cut_repeatedly(proxied: &mut ProxiedStore, counts: &Counts) -> Vec<String> {
    let mut backends = Vec::new();
    for cut in 0..CUTS {
        wait_for_growth(&counts.successes, 1 + cut * 40).await;
        backends.extend(proxied.observer.backends().await);
        if cut == 0 {
            proxied.proxy.refuse();
            wait_for_growth(&counts.unavailable, 1).await;
            proxied.proxy.heal();
        } else {
            proxied.proxy.cut();
        }
    }
    counts.stopped.store(true, Ordering::Relaxed);
    backends
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_outcome_is_correct_despite_many_cuts() {
    in_both_modes(&settings(), async |settings| {
        let mut proxied = ProxiedStore::new(settings).await;
        let counts = Arc::new(Counts::default());
        let adders: Vec<_> = (0..ADDERS)
            .map(|adder| add_continuously(Arc::clone(&proxied.store.repository), adder, Arc::clone(&counts)))
            .map(tokio::spawn)
            .collect();
        let backends = cut_repeatedly(&mut proxied, &counts).await;
        let mut outcomes = Outcomes::new();
        for adder in adders {
            outcomes.extend(adder.await.expect("no panic"));
        }
        proxied.observer.wait_until_ended(&backends).await;
        wait_for_outcome(&proxied.store.repository, Success, TEST_TIMEOUT).await;
        check(&proxied, &outcomes).await;
    })
    .await;
}

async fn check(proxied: &ProxiedStore, outcomes: &Outcomes) {
    let mut stored: HashMap<&str, Vec<&str>> = HashMap::new();
    let rows = proxied.observer.column("SELECT id || ' ' || name FROM pets WHERE name <> 'Rex'").await;
    for row in &rows {
        let (id, name) = row.split_once(' ').expect("two columns");
        stored.entry(name).or_default().push(id);
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (name, outcome) in outcomes {
        let ids = stored.remove(name.as_str()).unwrap_or_default();
        match outcome {
            Ok(pet) => assert_eq!(ids, [pet.id().get().to_string()], "{name}"),
            Err(AddPetError::Store(StoreFailure::OutcomeUnknown(_))) => assert!(ids.len() <= 1, "{name}: {ids:?}"),
            Err(_) => assert_eq!(ids, [""; 0], "{name}"),
        }
        *counts.entry(format!("{:?}, stored {}", add_outcome(outcome), ids.len())).or_default() += 1;
    }
    assert!(stored.is_empty(), "these were not requested: {stored:?}");
    for expected in ["Success, stored 1", "Unavailable, stored 0"] {
        assert!(counts.contains_key(expected), "{counts:?}");
    }
}
