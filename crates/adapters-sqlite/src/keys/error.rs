use animal_store_app::{ApiKeyImportConflict, ports::ApiKeyStoreError};

use crate::{
    SqliteFile,
    change::{AccessError, Failure},
};

/// A failed access to API keys.
pub(crate) type KeyError = AccessError<Refusal>;

/// Why a change is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Another key has this part of the key.
    Taken(&'static str),
    Import(ApiKeyImportConflict),
}

/// Converts an error into that of the port.
pub(crate) fn port_error(error: KeyError, file: &SqliteFile) -> ApiKeyStoreError {
    match error.into_failure(file.path()) {
        Failure::Unavailable(cause) => ApiKeyStoreError::Unavailable(cause),
        Failure::OutcomeUnknown(cause) => ApiKeyStoreError::OutcomeUnknown(cause),
        Failure::Corrupt(cause) => ApiKeyStoreError::Corrupt(cause),
        Failure::Refused(Refusal::Taken(what)) => {
            ApiKeyStoreError::Conflict(format!("another API key has this {what}").into())
        }
        Failure::Refused(Refusal::Import(conflict)) => ApiKeyStoreError::Conflict(conflict.into()),
    }
}
