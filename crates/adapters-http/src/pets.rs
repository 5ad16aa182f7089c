//! The handlers of the operations, and what they read from paths, queries and headers.

mod create;
mod digits;
pub(crate) mod get;
pub(crate) mod idempotency_key;
mod list;
pub(crate) mod list_query;

pub(crate) use create::create_pet;
pub(crate) use get::{DEPRECATION, get_pet};
pub(crate) use idempotency_key::IDEMPOTENCY_REPLAYED;
pub(crate) use list::list_pets;
