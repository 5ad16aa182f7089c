//! What comes of calls of a repository, and how soon.

use std::time::{Duration, Instant};

use animal_store_adapters_postgres::{PgPetRepository, PgStorage};
use animal_store_app::ports::{AddPet, AddPetError, PetRepository, StorageError};
use animal_store_domain::{CategoryId, NewPet, Pet, PetId, PetName};
use tokio::join;

/// How long something is waited for that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What a busy machine may take for what takes no time.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    Unavailable,
    Deadline,
    Overloaded,
    /// Of an add alone.
    Unknown,
}

pub(crate) use Outcome::{Answered, Deadline, Overloaded, Unavailable, Unknown};

pub(crate) fn pet(name: &str) -> NewPet {
    NewPet::new(PetName::parse(name).expect("a name"), CategoryId::new(1))
}

pub(crate) async fn add(repository: &PgPetRepository, name: &str) -> Result<Pet, AddPetError> {
    repository.add(AddPet::new(pet(name))).await.map(|added| added.pet)
}

pub(crate) async fn find(repository: &PgPetRepository, id: i64) -> Result<Option<Pet>, StorageError> {
    repository.find(PetId::parse(id).expect("an id")).await
}

pub(crate) fn of_read<T>(result: &Result<T, StorageError>) -> Outcome {
    match result {
        Ok(_) => Answered,
        Err(StorageError::Unavailable(_)) => Unavailable,
        Err(StorageError::Timeout) => Deadline,
        Err(StorageError::Overloaded) => Overloaded,
        Err(error) => panic!("{error:?}"),
    }
}

pub(crate) fn of_add(result: &Result<Pet, AddPetError>) -> Outcome {
    match result {
        Ok(_) => Answered,
        Err(AddPetError::OutcomeUnknown(_)) => Unknown,
        Err(AddPetError::NotStored(StorageError::Unavailable(_))) => Unavailable,
        Err(AddPetError::NotStored(StorageError::Timeout)) => Deadline,
        Err(AddPetError::NotStored(StorageError::Overloaded)) => Overloaded,
        Err(error) => panic!("{error:?}"),
    }
}

/// The reason, with those behind it.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Why the storage is not ready, if it is not.
pub(crate) async fn not_ready(storage: &PgStorage) -> Option<String> {
    storage.readiness().check().await.err().map(|not_ready| not_ready.0.to_string())
}

/// Lists, finds and adds at the same time; all of that ends in this time.
pub(crate) async fn each(repository: &PgPetRepository, within: Duration) -> [Outcome; 3] {
    let start = Instant::now();
    let (list, find, add) =
        join!(repository.list(None, None, 10), self::find(repository, 1), self::add(repository, "Rex"));
    let outcomes = [of_read(&list), of_read(&find), of_add(&add)];
    assert!(start.elapsed() < within, "{outcomes:?} after {:?}", start.elapsed());
    outcomes
}

/// Until list, find and add come to this. All of them end in this time.
pub(crate) async fn comes_to(repository: &PgPetRepository, expected: Outcome, within: Duration) {
    let start = Instant::now();
    loop {
        let outcomes = each(repository, within).await;
        if outcomes == [expected; 3] {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{outcomes:?}, and not {expected:?}");
        a_moment().await;
    }
}

pub(crate) async fn comes_to_be_ready(storage: &PgStorage) {
    let start = Instant::now();
    while let Some(reason) = not_ready(storage).await {
        assert!(start.elapsed() < PATIENCE, "{reason}");
        a_moment().await;
    }
}

/// Between two looks at something that is waited for, so that looking does not keep it from happening.
pub(crate) async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
