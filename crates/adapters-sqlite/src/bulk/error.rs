use animal_store_app::ports::BulkStorageError;
use animal_store_domain::PetId;

use crate::{
    SqliteFile,
    change::{AccessError, Failure},
};

/// A failed access to pets.
pub(super) type BulkError = AccessError<Refusal>;

/// A reason for which a batch is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    IdTaken(PetId),
    ImportConflict,
}

/// Converts an error into that of the port.
pub(super) fn port_error(error: BulkError, file: &SqliteFile) -> BulkStorageError {
    match error.into_failure(file.path()) {
        Failure::Unavailable(cause) => BulkStorageError::Unavailable(cause),
        Failure::OutcomeUnknown(cause) => BulkStorageError::OutcomeUnknown(cause),
        Failure::Corrupt(cause) => BulkStorageError::Corrupt(cause),
        Failure::Refused(Refusal::IdTaken(id)) => BulkStorageError::IdTaken(id),
        Failure::Refused(Refusal::ImportConflict) => BulkStorageError::ImportConflict,
    }
}
