use std::{error::Error, fmt};

use super::ImportSummary;
use crate::ports::{BulkStorageError, PetFileError};

/// The import ended before the end of the file.
#[derive(Debug)]
pub struct ImportError {
    /// What was done before. It stays.
    pub done: ImportSummary,
    /// Why the import ended.
    pub reason: ImportErrorReason,
}

/// Why an import ended before the end of the file.
#[derive(Debug, thiserror::Error)]
pub enum ImportErrorReason {
    /// An earlier import of this file is unfinished, and this one should not resume it. Nothing was done.
    #[error("an import of this file is unfinished, {0} lines are done: continue it with --resume")]
    Unfinished(u64),
    /// The file differs from the one of the earlier import, or one of both keeps the ids. Nothing was done.
    #[error(
        "an import of a file that begins like this one is unfinished, but its first {0} lines have changed, or only \
         one of both imports has --keep-ids: continue it with the same file and the same options, or import the \
         further lines from a file of their own"
    )]
    OtherFile(u64),
    /// A line was refused by a strict import. All lines before it are done.
    #[error("line {line}: {reason}")]
    RefusedLine {
        /// Line number in the file, from 1.
        line: u64,
        /// Every reason, for people.
        reason: String,
    },
    /// The file cannot be read to its end.
    #[error(transparent)]
    Source(PetFileError),
    /// The storage failed. Of its last batch, nothing was done.
    #[error("the import failed")]
    Storage(#[source] BulkStorageError),
    /// The last batch may have been written.
    #[error("the outcome of the last batch is unknown: it may have been written")]
    OutcomeUnknown(#[source] BulkStorageError),
}

impl From<BulkStorageError> for ImportErrorReason {
    fn from(error: BulkStorageError) -> Self {
        match error {
            BulkStorageError::OutcomeUnknown(_) => Self::OutcomeUnknown(error),
            _ => Self::Storage(error),
        }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(formatter)
    }
}

impl Error for ImportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.reason.source()
    }
}
