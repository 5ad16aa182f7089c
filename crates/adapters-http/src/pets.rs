//! The handlers of the operations, and the shapes of their requests and responses.

mod create;
mod cursor;
mod digits;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod get;
mod idempotency_key;
mod json_integer;
mod list;
mod list_query;
mod member;
mod new_pet_request;
mod pet_response;

pub(crate) use create::create_pet;
pub(crate) use cursor::CURSOR_PATTERN;
pub(crate) use get::get_pet;
pub(crate) use idempotency_key::{IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_PATTERN, IDEMPOTENCY_REPLAYED};
pub(crate) use list::list_pets;

use animal_store_domain::{NewPet, Pet};

/// Parses a line of a file of pets, which has the shape of a request body of `createPet`.
///
/// # Errors
/// Every problem of the line, for people.
pub fn parse_line(line: &[u8]) -> Result<NewPet, String> {
    new_pet_request::parse(line, "the line").map_err(|problems| problems.to_string())
}

/// Returns a pet as a line of NDJSON: a JSON object with the id, and a line feed.
pub fn line(pet: &Pet) -> Vec<u8> {
    let mut line = pet_response::pet(pet);
    line.push(b'\n');
    line
}
