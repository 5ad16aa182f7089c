//! A read sees every pet that was confirmed before it, whichever process and worker confirmed it.
//!
//! The number of checks is in `READ_YOUR_WRITES_CHECKS`. A million, without a miss, is:
//!
//! ```text
//! READ_YOUR_WRITES_CHECKS=1000000 scripts/with-postgres \
//!     cargo test -p animal-store-adapters-postgres --test postgres read_your_writes
//! ```

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use animal_store_adapters_postgres::{PgPetRepository, PostgresSettings};
use animal_store_app::ports::PetRepository;
use animal_store_domain::{Pet, PetId};
use animal_store_test_servers::PgDatabase;
use futures_util::future::join_all;

use crate::{
    outcomes::add,
    store::{Store, both_modes, settings},
};

const WORKERS_PER_PROCESS: usize = 2;
const WRITERS: usize = 48;

/// Reads that look for a pet in one repository: a get, a list, and a list by status.
const CHECKS_PER_REPOSITORY: usize = 3;

#[derive(Default)]
struct Counts {
    checks: AtomicUsize,
    misses: AtomicUsize,
}

/// Returns how many reads do not contain the pet.
async fn misses(repository: &PgPetRepository, pet: &Pet) -> usize {
    let before = PetId::parse(pet.id().get() - 1).ok();
    let (found, listed, of_status) = tokio::join!(
        repository.find(pet.id()),
        repository.list(None, before, 1),
        repository.list(pet.new_pet().status(), before, 2)
    );
    let found = found.expect("a response").as_ref() == Some(pet);
    let listed = listed.expect("a response").first() == Some(pet);
    let of_status = of_status.expect("a response").first() == Some(pet);
    [found, listed, of_status].into_iter().filter(|&seen| !seen).count()
}

/// Adds in one repository and reads in all, until there are enough checks.
async fn write_and_read(repositories: Vec<Arc<PgPetRepository>>, writer: usize, enough: usize, counts: Arc<Counts>) {
    let mut number = writer;
    while counts.checks.load(Relaxed) < enough {
        let pet = add(&repositories[number % repositories.len()], "Rex").await.expect("added");
        number += 1;
        let misses = join_all(repositories.iter().map(|repository| misses(repository, &pet))).await;
        counts.checks.fetch_add(misses.len() * CHECKS_PER_REPOSITORY, Relaxed);
        counts.misses.fetch_add(misses.iter().sum(), Relaxed);
    }
}

async fn sees_every_pet(settings: PostgresSettings, enough: usize) {
    let database = PgDatabase::new();
    let stores = [Store::at(database.url(), settings.clone()).await, Store::at(database.url(), settings.clone()).await];
    let repositories: Vec<_> = stores
        .iter()
        .flat_map(|store| (0..WORKERS_PER_PROCESS).map(|_| Arc::new(store.storage.repository())))
        .collect();
    let counts = Arc::new(Counts::default());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write_and_read(repositories.clone(), writer, enough, Arc::clone(&counts))))
        .collect();
    for writer in join_all(writers).await {
        writer.expect("no panic");
    }
    let (checks, misses) = (counts.checks.load(Relaxed), counts.misses.load(Relaxed));
    assert_eq!(misses, 0, "of {checks} checks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_confirmed_pet_is_read_by_every_worker_of_every_process() {
    let checks = env::var_os("READ_YOUR_WRITES_CHECKS")
        .map_or(20_000, |checks| checks.to_str().and_then(|checks| checks.parse().ok()).expect("a number"));
    for settings in both_modes(&settings()) {
        sees_every_pet(settings, checks / 2).await;
    }
}
