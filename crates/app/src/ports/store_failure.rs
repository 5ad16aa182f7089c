use thiserror::Error;

use super::Cause;

/// A store of pets or of API keys failed.
#[derive(Debug, Error)]
pub enum StoreFailure {
    /// The store cannot be reached or refuses the call. Nothing was changed.
    #[error("the store is unavailable")]
    Unavailable(#[source] Cause),
    /// A bound of the adapter, such as the length of a queue, is reached. Nothing was changed.
    #[error("the store is overloaded")]
    Overloaded,
    /// The store did not respond within its timeout. Nothing was changed.
    #[error("the store did not respond in time")]
    Timeout,
    /// A stored entry is not valid. Nothing was changed.
    #[error("the store contains an invalid entry")]
    Corrupt(#[source] Cause),
    /// The store did not confirm a change: it may have been made.
    #[error("the outcome is unknown: the change may have been made")]
    OutcomeUnknown(#[source] Cause),
}
