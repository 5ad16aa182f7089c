//! Pets and the rules for their values.
//!
//! Values are parsed once: a [`PetName`] can only hold a valid name, so no later code checks it again. This crate reads
//! no clock, does no I/O and knows no wire format. Begin with [`NewPet`] and [`Pet`]; [`ListQuery`] and [`Page`]
//! describe lists.

#![warn(clippy::future_not_send)]

mod category_id;
mod creation_time;
mod listing;
mod new_pet;
mod pet;
mod pet_id;
mod pet_name;
mod pet_status;

pub use category_id::CategoryId;
pub use creation_time::{CreationTime, CreationTimeError};
pub use listing::{ListQuery, Page, PageLimit, PageLimitError};
pub use new_pet::NewPet;
pub use pet::Pet;
pub use pet_id::{PetId, PetIdError};
pub use pet_name::{PetName, PetNameError};
pub use pet_status::{PetStatus, PetStatusError};
