//! The handlers of the operations, and the shapes of their requests and responses.

mod create;
pub(crate) mod get;
pub(crate) mod idempotency_key;
mod list;
pub(crate) mod list_query;
mod members;
mod new_pet_request;
mod numbers;
mod pet_response;

pub(crate) use create::create_pet;
pub(crate) use get::{DEPRECATION, get_pet};
pub(crate) use idempotency_key::IDEMPOTENCY_REPLAYED;
pub(crate) use list::list_pets;

use animal_store_domain::{NewPet, Pet};
use new_pet_request::Subject;

/// Parses a line of a file of pets, which has the shape of a request body of `createPet`.
///
/// # Errors
/// Every problem of the line, for people.
pub fn parse_line(line: &[u8]) -> Result<NewPet, String> {
    new_pet_request::parse(line, Subject::Line)
}

/// Returns a pet as a line of NDJSON: a JSON object with the id, and a line feed.
pub fn line(pet: &Pet) -> Vec<u8> {
    let mut line = pet_response::pet(pet);
    line.push(b'\n');
    line
}
