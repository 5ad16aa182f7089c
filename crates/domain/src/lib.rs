//! Animals and the rules they obey.
//!
//! Values are parsed, not validated: a [`PetName`] that exists is a name that may exist. Nothing here reads a
//! clock, does I/O or knows a wire format, so every rule can be read, and tested, in one place.

#![warn(clippy::future_not_send)]

mod category_id;
mod listing;
mod new_pet;
mod pet;
mod pet_id;
mod pet_name;
mod pet_status;

pub use category_id::CategoryId;
pub use listing::{ListQuery, Page, PageLimit, PageLimitError};
pub use new_pet::NewPet;
pub use pet::Pet;
pub use pet_id::{PetId, PetIdError};
pub use pet_name::{PetName, PetNameError};
pub use pet_status::{PetStatus, PetStatusError};
