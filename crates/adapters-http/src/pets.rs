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
