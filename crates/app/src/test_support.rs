//! For tests only: sample values, the [`contract`] suites that every adapter has to pass, and random histories.
#![expect(
    clippy::missing_panics_doc,
    reason = "a helper panics if a test passes what it cannot use"
)]

pub mod contract;
pub mod failures;
mod findings;
mod histories;
pub mod key_changes;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_domain::{CategoryId, CreationTime, NewPet, Pet, PetId, PetName, PetStatus};

use crate::{
    ApiKey, ApiKeyId, ApiKeyLabel, Scopes,
    ports::{ApiKeyUses, MockApiKeyUses, StoredPet},
};

pub use self::{
    findings::{assert_finding, conspicuous},
    histories::assert_same_results,
};

/// Returns a pet with this name, category 1 and no status.
pub fn pet_named(name: &str) -> NewPet {
    NewPet::new(
        PetName::parse(name).expect("a valid name"),
        CategoryId::new(1),
    )
}

/// Returns a pet that was not created yet: Rex, category 1, available.
pub fn new_pet() -> NewPet {
    pet_named("Rex").with_status(PetStatus::Available)
}

/// Returns [`new_pet`] created under this id.
pub fn pet(id: i64) -> Pet {
    Pet::new(PetId::parse(id).expect("1 or greater"), new_pet())
}

/// Returns the [`pet`] with this id, created as many microseconds after 1970.
pub fn stored_pet(id: i64) -> StoredPet {
    StoredPet {
        pet: pet(id),
        created_at: CreationTime::parse(id).expect("after 1970"),
    }
}

/// Returns a [`stored_pet`] for each id.
pub fn stored_pets(ids: impl IntoIterator<Item = i64>) -> Vec<StoredPet> {
    ids.into_iter().map(stored_pet).collect()
}

/// Returns the id of an API key.
pub fn api_key_id(id: &str) -> ApiKeyId {
    ApiKeyId::parse(id).expect("a valid id")
}

/// Returns an API key with this id, a label made from it, and all scopes.
pub fn api_key(id: &str) -> ApiKey {
    let label = ApiKeyLabel::parse(&format!("label of {id}")).expect("a valid label");
    ApiKey {
        id: api_key_id(id),
        label,
        scopes: Scopes::ALL,
    }
}

/// Returns a record of uses that records nothing.
pub fn unrecorded_uses() -> Arc<dyn ApiKeyUses> {
    let mut uses = MockApiKeyUses::new();
    uses.expect_note().return_const(());
    Arc::new(uses)
}

/// Runs tasks concurrently and returns their results, in the order of the tasks.
pub async fn join_tasks<T: Send + 'static>(
    tasks: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("no task panics"));
    }
    results
}

/// Waits until a condition holds.
pub async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(
            start.elapsed() < Duration::from_mins(2),
            "{what}: not in time"
        );
        // Polling without a pause would delay the expected event.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
