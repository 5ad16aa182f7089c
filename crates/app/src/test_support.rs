//! For tests only: animals to test with, and the [contract] that every adapter has to pass.

pub mod contract;

use crate::{ApiKey, ApiKeyId, ApiKeyLabel, Scopes};
use animal_store_domain::{CategoryId, NewPet, Pet, PetId, PetName, PetStatus};

/// An animal that nobody has created yet.
///
/// # Panics
/// Never: its name is a name.
pub fn new_pet() -> NewPet {
    NewPet::new(PetName::parse("Rex").expect("a name"), CategoryId::new(1), Some(PetStatus::Available))
}

/// The same animal, created under this id.
///
/// # Panics
/// Where the id is below 1.
pub fn pet(id: i64) -> Pet {
    Pet::new(PetId::new(id).expect("1 or more"), new_pet())
}

/// An API key that may do everything, with this id and a label made of it.
///
/// # Panics
/// Where the id is too long for a label.
pub fn api_key(id: &str) -> ApiKey {
    let label = ApiKeyLabel::parse(&format!("label of {id}")).expect("a label");
    ApiKey { id: ApiKeyId::new(id), label, scopes: Scopes::ALL }
}
