//! The JSON of a pet, in both directions: the bodies of the HTTP interface, and the lines of imports and exports.
//!
//! A pet that is to be added is an object with `name`, `categoryId` and, if it has one, `status`. A pet that the store
//! returns has its `id` as well. `docs/openapi.json` describes both as the schemas `NewPet` and `Pet`.

mod integer;
mod member;
mod pet;

pub use pet::{Subject, from_slice, list_to_vec, to_line, to_vec, without_byte_order_mark};
