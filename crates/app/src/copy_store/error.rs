use animal_store_domain::PetId;
use thiserror::Error;

use crate::ports::{ApiKeyChangeError, StoreFailure};

/// The copy failed. After every error the same call may be repeated.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The pets or the API keys of the source cannot be read.
    #[error("the source cannot be read")]
    Source(#[source] StoreFailure),
    /// The copy would lack what a newer program has added to the source by these migrations. Nothing was written.
    #[error(
        "a newer program has expanded the schema of the source ({0}), and this one would leave out what was added: run \
         the command of the newer program"
    )]
    NewerSource(String),
    /// Pets or API keys cannot be read from the target, or added to it.
    #[error("the target cannot be used")]
    Target(#[source] ApiKeyChangeError),
    /// The target has a pet that the source does not have, or another one with the same id. Nothing was written.
    #[error("the target contains other pets, for example the one with the id {}: choose an empty target", .0.get())]
    OtherPets(PetId),
    /// The target got other pets during the copy, or one of its pets was changed.
    #[error(
        "the target was changed during the copy: stop the services that use it, and repeat the command"
    )]
    Changed,
}

pub(super) fn target(error: impl Into<ApiKeyChangeError>) -> CopyError {
    CopyError::Target(error.into())
}
