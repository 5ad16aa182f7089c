use animal_store_app::ports::ApiKeyStoreError;

use crate::{
    SqliteFile,
    change::{AccessError, Failure},
};

/// A failed access to API keys. A refused change contains the part of a key that another one has.
pub(super) type KeyError = AccessError<&'static str>;

/// Converts an error into that of the port.
pub(super) fn port_error(error: KeyError, file: &SqliteFile) -> ApiKeyStoreError {
    match error.into_failure(file.path()) {
        Failure::Unavailable(cause) => ApiKeyStoreError::Unavailable(cause),
        Failure::OutcomeUnknown(cause) => ApiKeyStoreError::OutcomeUnknown(cause),
        Failure::Corrupt(cause) => ApiKeyStoreError::Corrupt(cause),
        Failure::Refused(what) => ApiKeyStoreError::Conflict(format!("another API key has this {what}").into()),
    }
}
