//! For tests only: sample values, the [`contract`] suites that every adapter has to pass, and random histories.

pub mod contract;
mod histories;

use std::sync::Arc;

use animal_store_domain::{CategoryId, CreationTime, NewPet, Pet, PetId, PetName, PetStatus};

use crate::{
    ApiKey, ApiKeyId, ApiKeyLabel, ReadAccess, Scopes, WriteAccess,
    ports::{ApiKeyUses, MockApiKeyUses, StoredPet},
};

pub use self::histories::assert_same_results;

/// Returns a pet with this name, category 1 and no status.
///
/// # Panics
/// If the name is not valid.
pub fn pet_named(name: &str) -> NewPet {
    NewPet::new(PetName::parse(name).expect("a valid name"), CategoryId::new(1))
}

/// Returns a pet that was not created yet: Rex, category 1, available.
pub fn new_pet() -> NewPet {
    pet_named("Rex").with_status(PetStatus::Available)
}

/// Returns [`new_pet`] created under this id.
///
/// # Panics
/// If the id is below 1.
pub fn pet(id: i64) -> Pet {
    Pet::new(PetId::parse(id).expect("1 or greater"), new_pet())
}

/// Returns the [`pet`] with this id, created as many microseconds after 1970.
///
/// # Panics
/// If the id is below 1.
pub fn stored_pet(id: i64) -> StoredPet {
    StoredPet { pet: pet(id), created_at: CreationTime::parse(id).expect("after 1970") }
}

/// Returns a [`stored_pet`] for each id.
///
/// # Panics
/// If an id is below 1.
pub fn stored_pets(ids: impl IntoIterator<Item = i64>) -> Vec<StoredPet> {
    ids.into_iter().map(stored_pet).collect()
}

/// Returns an API key with this id, a label made from it, and all scopes.
///
/// # Panics
/// If the id is too long for a label.
pub fn api_key(id: &str) -> ApiKey {
    let label = ApiKeyLabel::parse(&format!("label of {id}")).expect("a valid label");
    ApiKey { id: ApiKeyId::new(id), label, scopes: Scopes::ALL }
}

/// Returns a record of uses that records nothing.
pub fn unrecorded_uses() -> Arc<dyn ApiKeyUses> {
    let mut uses = MockApiKeyUses::new();
    uses.expect_note().return_const(());
    Arc::new(uses)
}

/// Runs tasks concurrently and returns their results, in the order of the tasks.
///
/// # Panics
/// If a task panics.
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

/// Returns the read access of an API key with all scopes.
///
/// # Panics
/// Never: the key has the scope.
pub fn read_access() -> ReadAccess {
    ReadAccess::new(&api_key("key")).expect("the key has the scope")
}

/// Returns the write access of an API key with all scopes.
///
/// # Panics
/// Never: the key has the scope.
pub fn write_access() -> WriteAccess {
    WriteAccess::new(Arc::new(api_key("key"))).expect("the key has the scope")
}
