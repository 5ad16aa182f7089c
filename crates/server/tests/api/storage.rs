//! The storage as clients see it: the same for every backend that `TEST_STORAGE_BACKEND` names.

mod create_pet;
mod get_pet;
pub(crate) mod idempotency;
mod idempotency_races;
mod list_pets;
mod pagination;
mod shutdown;
