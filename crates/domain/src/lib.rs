//! Pets and the rules for their values.
//!
//! Values are parsed once: a [`PetName`] can only hold a valid name, so no later code checks it again. This crate reads
//! no clock, does no I/O and knows no wire format. Begin with [`NewPet`] and [`Pet`]; [`ListQuery`] and [`Page`]
//! describe lists.

#![warn(clippy::future_not_send)]

mod creation_time;
mod ids;
mod listing;
mod pet;
mod pet_name;
mod pet_status;

pub use creation_time::{CreationTime, CreationTimeError};
pub use ids::{CategoryId, PetId, PetIdError};
pub use listing::{ListQuery, Page, PageLimit, PageLimitError};
pub use pet::{NewPet, Pet};
pub use pet_name::{PetName, PetNameError};
pub use pet_status::{PetStatus, PetStatusError};
