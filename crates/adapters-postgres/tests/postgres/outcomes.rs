//! Calls of a repository and their outcomes.

use std::{error::Error, iter::successors, time::Duration};

use animal_store_adapters_postgres::{PgPetRepository, PgStorage};
use animal_store_app::{
    ports::{AddPet, AddPetError, PetRepository, StoreFailure},
    test_support::pet_named,
};
use animal_store_domain::{Pet, PetId};
use tokio::{join, time::timeout};

/// Longest wait for an event that has to happen.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Limit for every call: half of the timeouts of [`settings`](crate::store::settings), and several times the others.
pub(crate) const PROMPT: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Unavailable,
    Timeout,
    /// Of adds only.
    Unknown,
}

pub(crate) use Outcome::{Success, Timeout, Unavailable, Unknown};
pub(crate) use animal_store_app::test_support::wait_until;

pub(crate) async fn add(repository: &PgPetRepository, name: &str) -> Result<Pet, AddPetError> {
    repository
        .add(AddPet::new(pet_named(name)))
        .await
        .map(|added| added.pet)
}

pub(crate) async fn find(
    repository: &PgPetRepository,
    id: i64,
) -> Result<Option<Pet>, StoreFailure> {
    repository.find(PetId::parse(id).expect("an id")).await
}

/// Adds a pet and finds it.
pub(crate) async fn adds_and_finds(repository: &PgPetRepository) -> Pet {
    let pet = add(repository, "Rex").await.expect("added");
    assert_eq!(
        repository.find(pet.id()).await.expect("found").as_ref(),
        Some(&pet)
    );
    pet
}

pub(crate) fn read_outcome<T>(result: &Result<T, StoreFailure>) -> Outcome {
    match result {
        Ok(_) => Success,
        Err(StoreFailure::Unavailable(_)) => Unavailable,
        Err(StoreFailure::Timeout) => Timeout,
        Err(error) => panic!("{error:?}"),
    }
}

pub(crate) fn add_outcome(result: &Result<Pet, AddPetError>) -> Outcome {
    match result {
        Ok(_) => Success,
        Err(AddPetError::Store(StoreFailure::OutcomeUnknown(_))) => Unknown,
        Err(AddPetError::Store(StoreFailure::Unavailable(_))) => Unavailable,
        Err(AddPetError::Store(StoreFailure::Timeout)) => Timeout,
        Err(error) => panic!("{error:?}"),
    }
}

/// The error with its sources.
pub(crate) fn reason(error: &dyn Error) -> String {
    successors(error.source(), |&error| error.source())
        .fold(error.to_string(), |text, error| format!("{text}: {error}"))
}

/// The reason if the storage is not ready.
pub(crate) async fn not_ready(storage: &PgStorage) -> Option<String> {
    storage
        .readiness()
        .check()
        .await
        .err()
        .map(|not_ready| not_ready.to_string())
}

/// Lists, finds and adds at the same time.
pub(crate) async fn list_find_add(repository: &PgPetRepository) -> [Outcome; 3] {
    let calls = async {
        join!(
            repository.list(None, None, 10),
            find(repository, 1),
            add(repository, "Rex")
        )
    };
    let (list, find, add) = timeout(PROMPT, calls)
        .await
        .expect("no call waits for another timeout");
    [read_outcome(&list), read_outcome(&find), add_outcome(&add)]
}

/// Waits until list, find and add have this outcome.
pub(crate) async fn wait_for_outcome(repository: &PgPetRepository, expected: Outcome) {
    let what = format!("list, find and add: {expected:?}");
    wait_until(&what, async || {
        list_find_add(repository).await == [expected; 3]
    })
    .await;
}

pub(crate) async fn wait_until_ready(storage: &PgStorage) {
    wait_until("the storage is ready", async || {
        not_ready(storage).await.is_none()
    })
    .await;
}
