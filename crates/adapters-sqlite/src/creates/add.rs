use animal_store_app::ports::{AddPet, AddPetError, AddedPet, StoreFailure};
use tokio::sync::oneshot;

use crate::error::storage_error;

/// The result of a create.
pub(super) type AddResult = Result<AddedPet, AddPetError>;

/// A request to the writer, and the channel for its response.
pub(super) enum Write {
    Add {
        request: AddPet,
        sender: oneshot::Sender<AddResult>,
    },
    /// Checks that a transaction can begin.
    Check {
        sender: oneshot::Sender<Result<(), StoreFailure>>,
    },
}

/// Why a batch failed.
#[derive(Debug, Clone)]
pub(super) enum BatchError {
    /// The message of SQLite. The batch was rolled back.
    NotStored(String),
    /// The message of SQLite. The commit may be in the file.
    OutcomeUnknown(String),
}

impl From<BatchError> for AddPetError {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::NotStored(message) => storage_error(&message).into(),
            BatchError::OutcomeUnknown(message) => Self::OutcomeUnknown(message.into()),
        }
    }
}
