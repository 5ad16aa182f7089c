use animal_store_app::ports::StoreFailure;
use thiserror::Error;

use crate::error::READ_ONLY;

/// A request was not executed, or its outcome is unknown.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The response to the request.
    pub(crate) failure: StoreFailure,
    pub(crate) affects: Affected,
}

/// What a failure is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Affected {
    /// A row of one of the requests with this failure: they are executed again in smaller batches.
    Row,
    /// All requests with this failure.
    Batch,
    /// The session may be unable to execute these requests, which had no effect: they are executed in a new one.
    Session,
    /// The connection has to be replaced.
    Connection(Lost),
}

/// Why a connection is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Lost {
    /// After a fail-over, another server accepts writes.
    #[error("{READ_ONLY}")]
    ReadOnly,
    /// Later responses would be delayed as well.
    #[error("the server did not respond in time")]
    NoResponse,
    #[error("the connection could not begin or end a transaction")]
    Transaction,
    #[error("the connection failed before a commit")]
    BeforeCommit,
    #[error("the connection did not report the outcome of a commit")]
    InCommit,
    #[error("a batch panicked")]
    Panic,
}

impl Failure {
    pub(crate) const fn new(failure: StoreFailure, affects: Affected) -> Self {
        Self { failure, affects }
    }
}
