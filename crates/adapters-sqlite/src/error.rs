//! Errors of the file. Diesel passes on the messages of SQLite, but not its codes.

use std::{
    error::Error as StdError,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use animal_store_adapter_kit::{Objection, command_of_owner};
use animal_store_app::ports::StoreFailure;
use diesel::result::{DatabaseErrorKind, Error};
use thiserror::Error;

use crate::way_to_write::way_to_write;

/// The file cannot be used. The message names it, and says what to do.
#[derive(Debug, Error)]
#[error("{path}: {problem}{}", .problem.advice(.path))]
pub struct SqliteFileError {
    path: PathBuf,
    pub(crate) problem: Problem,
}

/// Why the file cannot be used, or a statement failed.
#[derive(Debug, Error)]
pub(crate) enum Problem {
    #[error(
        "the file does not exist: check its path (storage.sqlite.path, or an argument) and the working directory; to make \
         a new store, start the service, or add --create to keys create or pets import"
    )]
    Missing,
    #[error("this is a link to a file that does not exist: put the file there, or remove the link")]
    BrokenLink,
    /// This log exists, and the file is missing, empty, in a format without a log, or another store.
    #[error(
        "the file of the log {0} is missing, empty or replaced: the last pets may be in the log. Put the file back \
         beside its log; to use another file, or to make a new one, move the log away first"
    )]
    Lost(PathBuf),
    #[error("the folder does not exist: create it, or change storage.sqlite.path")]
    NoFolder,
    /// Only a connection that may write can apply it.
    #[error("a crash left a journal beside the file, which the next start of the service applies")]
    Journal,
    #[error(
        "this user cannot read and write the file and its folder, where SQLite keeps the log ({0})"
    )]
    NotWritable(String),
    /// Another user decides what the file, or one beside it, contains.
    #[error("{0}")]
    NotBelieved(Objection),
    #[error("this is a folder: add the name of a file to storage.sqlite.path")]
    IsFolder,
    /// SQLite would wait for the other end of a pipe without a timeout.
    #[error("this is a pipe, a device or a socket, and not a file: change storage.sqlite.path")]
    IsSpecial,
    #[error(
        "the file has several names (hard links), and each one would have a log of its own, which loses pets: use the \
         name with a log (-wal) beside it; if none has one, use a copy (cp), or remove the other names"
    )]
    HardLinks,
    #[error("the file is not an SQLite database: change storage.sqlite.path, or restore a backup")]
    NotADatabase,
    #[error("the file is an SQLite database of another program: change storage.sqlite.path")]
    OtherProgram,
    /// This command does not run migrations.
    #[error("these migrations are pending: {names}", names = .0.join(", "))]
    Pending(Vec<String>),
    /// This program does not work with the schema.
    #[error("{0}")]
    Schema(String),
    #[error(
        "the schema cannot be brought up to date: {0}. Nothing was changed: examine the file with animal-store \
         doctor, or use the earlier release"
    )]
    Migration(String),
    #[error(
        "the file is damaged ({0}): restore a backup, or save what can be read with animal-store copy, or as \
         docs/operations/sqlite.md says"
    )]
    Corrupt(String),
    #[error("another process has locked the file: end it, or try again later")]
    Locked,
    /// The path no longer names the file that this process has opened, or the file has another content.
    #[error(
        "the file or its log was moved, removed, replaced or overwritten, or a journal (-journal) was put beside it, \
         while this process uses it: creates and lookups of API keys get 503 until it is back. Move it back, and the \
         journal away; to use another file, stop the service, move the log (-wal) away, and start it again"
    )]
    Replaced,
    /// SQLite has one message for both.
    #[error("the disk is full (free some space), or no id is left (see the table sqlite_sequence)")]
    Full,
    #[error("the disk is nearly full, and the rest is for changes of API keys: free some space")]
    Reserve,
    #[error("a file with this name, or a log (-wal) beside it, exists")]
    Exists,
    #[error("{0}")]
    InvalidRow(String),
    #[error("a trigger suppressed a row of table pets")]
    Suppressed,
    #[error("a row with the same key exists")]
    Duplicate,
    /// The commit failed. If the log was written and only its synchronization failed, the change can exist after all.
    #[error("{0}")]
    Commit(String),
    #[error("{0}: check the path, the disk and the limits of this process, and try again")]
    Unavailable(String),
}

impl Problem {
    pub(crate) fn at(self, path: &Path) -> SqliteFileError {
        SqliteFileError {
            path: path.to_owned(),
            problem: self,
        }
    }

    /// Returns what the problem means for a port, with this cause.
    pub(crate) fn failure(&self, cause: String) -> StoreFailure {
        let cause = cause.into();
        match self {
            Self::Commit(_) => StoreFailure::OutcomeUnknown(cause),
            Self::InvalidRow(_) | Self::Corrupt(_) | Self::NotADatabase => {
                StoreFailure::Corrupt(cause)
            }
            _ => StoreFailure::Unavailable(cause),
        }
    }

    /// Returns the end of the message about a path: what to do, and which user can do it.
    fn advice(&self, path: &Path) -> String {
        match self {
            Self::Pending(_) => format!("; run {}", command_of_owner(path, "animal-store migrate")),
            Self::NotWritable(_) => format!(": {}", way_to_write(path)),
            Self::HardLinks => {
                let name = path.to_string_lossy();
                format!(
                    "; find / -samefile {} lists them",
                    shell_words::quote(&name)
                )
            }
            _ => String::new(),
        }
    }

    /// Classifies an error by the message of `sqlite3_errstr` that it contains.
    pub(crate) fn of_message(error: &impl ToString) -> Self {
        let message = error.to_string();
        let has = |text| message.contains(text);
        if has("file is not a database") {
            Self::NotADatabase
        } else if has("database disk image is malformed") || has("malformed database schema") {
            Self::Corrupt(message)
        } else if has("database is locked") {
            Self::Locked
        } else if has("attempt to write a readonly database") || has("unable to open database file")
        {
            Self::NotWritable(message)
        } else if has("database or disk is full") {
            Self::Full
        } else {
            Self::Unavailable(message)
        }
    }
}

/// The failure of a statement, of which the cause is the message, or an invalid row.
impl From<StoreFailure> for Problem {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            StoreFailure::Corrupt(cause) => Self::InvalidRow(cause.to_string()),
            failure => Self::of_message(&failure.reason()),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match &error {
            Error::DeserializationError(problem) => match problem.source() {
                Some(source) => Self::InvalidRow(format!("{problem}: {source}")),
                None => Self::InvalidRow(problem.to_string()),
            },
            Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _) => Self::Duplicate,
            error => Self::of_message(error),
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable(error.to_string())
            }
            ErrorKind::StorageFull => Self::Full,
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

impl SqliteFileError {
    /// Whether the file is refused because of who can change it: another user, or a process by another name.
    pub fn is_unsafe(&self) -> bool {
        matches!(self.problem, Problem::NotBelieved(_) | Problem::HardLinks)
    }

    /// Returns what the error means for a port.
    pub(crate) fn failure(&self) -> StoreFailure {
        self.problem.failure(self.to_string())
    }
}

impl From<SqliteFileError> for StoreFailure {
    fn from(error: SqliteFileError) -> Self {
        error.failure()
    }
}

/// Returns the error of an invalid row.
pub(crate) fn corrupt(problem: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::DeserializationError(problem.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_sqlite_decides_what_a_failure_means() {
        let failure = |message: &str| {
            Problem::of_message(&message)
                .at(Path::new("pets.db"))
                .failure()
        };
        let damaged = failure("database disk image is malformed");
        assert!(matches!(damaged, StoreFailure::Corrupt(_)), "{damaged:?}");
        for (message, text) in [
            (
                "unable to open database file",
                "pets.db: this user cannot read and write",
            ),
            (
                "attempt to write a readonly database",
                "pets.db: this user cannot read and write",
            ),
            (
                "database or disk is full",
                "pets.db: the disk is full (free some space), or no id is left",
            ),
            ("database is locked", "pets.db: another process has locked"),
            ("disk I/O error", "pets.db: disk I/O error: check the path"),
        ] {
            let StoreFailure::Unavailable(cause) = failure(message) else {
                panic!("{message}")
            };
            assert!(cause.to_string().starts_with(text), "{cause}");
        }
    }
}
