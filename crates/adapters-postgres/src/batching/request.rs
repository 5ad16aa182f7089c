use std::cmp::Ordering;

use animal_store_app::ports::{AddPetError, StoreFailure};

use crate::{
    connection::{Connection, ConnectionSettings, Session},
    error::NotConnected,
};

/// A request that shares its statement with others of its kind.
pub(crate) trait Request: Sized + Send + Sync + 'static {
    type Session: Session;
    /// What the statement returns for one request.
    type Outcome: Send;
    type Response: Send + 'static;
    type Error: From<BatchError> + Send + 'static;

    /// Greatest number of rows in a batch of several requests.
    const MAX_ROWS: usize;

    /// Whether a request in flight waits for its outcome, whatever its timeout: a client must not believe that a pet
    /// was not added.
    const OUTCOME_MATTERS: bool;

    /// Greatest number of rows that the statement reads or writes for the request.
    fn rows(&self) -> usize;

    /// Order within a batch. Equal requests keep the order in which they came.
    fn order(_: &Self, _: &Self) -> Ordering {
        Ordering::Equal
    }

    /// Executes a batch. Returns the outcomes in the order of the requests.
    fn execute(
        requests: &[&Self],
        connection: &Connection<Self::Session>,
        settings: &ConnectionSettings,
    ) -> impl Future<Output = Result<Vec<Self::Outcome>, Failure>> + Send;

    /// The result of the request. Releases everything that the request holds.
    fn result(self, outcome: Self::Outcome) -> Result<Self::Response, Self::Error>;
}

/// A batch was not executed, or its outcome is unknown.
pub(crate) struct Failure {
    pub(crate) error: BatchError,
    /// How to execute the batch again if one of its requests may have failed the others.
    pub(crate) split: Option<Split>,
}

/// Smaller batches in place of one.
pub(crate) struct Split {
    /// Number of batches, 2 or more.
    pub(crate) parts: usize,
    /// Whether they are executed after all other parts of the original batch.
    pub(crate) last: bool,
}

/// The error of the requests of a batch, or of a request that could not join one.
#[derive(Clone)]
pub(crate) enum BatchError {
    Timeout,
    Overloaded,
    Unavailable(String),
    Corrupt(String),
    OutcomeUnknown(String),
}

impl From<NotConnected> for BatchError {
    fn from(error: NotConnected) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        Self { error, split: None }
    }
}

impl From<BatchError> for StoreFailure {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::Timeout => Self::Timeout,
            BatchError::Overloaded => Self::Overloaded,
            BatchError::Unavailable(reason) | BatchError::OutcomeUnknown(reason) => Self::Unavailable(reason.into()),
            BatchError::Corrupt(cause) => Self::Corrupt(cause.into()),
        }
    }
}

impl From<BatchError> for AddPetError {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::OutcomeUnknown(reason) => Self::OutcomeUnknown(reason.into()),
            error => Self::NotStored(error.into()),
        }
    }
}
