//! Errors of the file. Diesel passes on the messages of SQLite, but not its codes.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use thiserror::Error;

// The messages of `sqlite3_errstr` that decide about something.
const NOT_A_DATABASE: &str = "file is not a database";
pub(crate) const FULL: &str = "database or disk is full";
pub(crate) const LOCKED: &str = "database is locked";
const READ_ONLY: &str = "attempt to write a readonly database";
const CANNOT_OPEN: &str = "unable to open database file";

/// The file cannot be used. Each message says what to do. The first value is the path.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SqliteFileError {
    /// There is no file.
    #[error("{0}: the file does not exist: check storage.sqlite.path and the working directory")]
    Missing(PathBuf),
    /// There is no file, or an empty one, or one without a log, but the log of another one.
    #[error(
        "{0}: the file of the log {1} is missing, empty or replaced: the last pets may be in the log. Put the file \
         back beside its log; to use another file, or to make a new one, move the log away first"
    )]
    Lost(PathBuf, PathBuf),
    /// The folder does not exist.
    #[error("{0}: the folder does not exist: create it, or change storage.sqlite.path")]
    NoFolder(PathBuf),
    /// The user of this process has too few permissions, or the disk is read-only. With the reason.
    #[error(
        "{0}: this user cannot read and write the file and its folder ({1}): run as the owner of the file, and allow \
         this user to write to the folder, because SQLite keeps its log beside the file"
    )]
    NotWritable(PathBuf, String),
    /// The path names a folder.
    #[error("{0}: this is a folder: add the name of a file to storage.sqlite.path")]
    IsFolder(PathBuf),
    /// The file is not an SQLite database.
    #[error("{0}: the file is not an SQLite database: change storage.sqlite.path, or restore a backup")]
    NotADatabase(PathBuf),
    /// Another program made the database.
    #[error("{0}: the file is an SQLite database of another program: change storage.sqlite.path")]
    OtherProgram(PathBuf),
    /// A program from before the first release made the file.
    #[error(
        "{0}: a program from before version 0.1.0 made this file: write its pets with that program (animal-store pets \
         export --output FILE), and import FILE into a new file with this one (animal-store pets import FILE)"
    )]
    OlderLayout(PathBuf),
    /// These migrations are pending, and this command does not run them.
    #[error("{0}: these migrations are pending: {names}; run animal-store migrate", names = .1.join(", "))]
    Pending(PathBuf, Vec<String>),
    /// A newer program changed the schema by these migrations.
    #[error(
        "{0}: a newer program has made changes that this one cannot work with: {names}; use its release, or restore a \
         backup",
        names = .1.join(", ")
    )]
    Newer(PathBuf, Vec<String>),
    /// A migration failed, for this reason. It had no effect.
    #[error(
        "{0}: the schema cannot be brought up to date: {1}. Nothing was changed: examine the file with animal-store \
         doctor, or use the earlier release"
    )]
    Migration(PathBuf, String),
    /// The file is damaged. With what was found.
    #[error("{0}: the file is damaged ({1}): restore a backup, or save what can be read with sqlite3 .recover")]
    Corrupt(PathBuf, String),
    /// Another process kept its lock for the whole timeout.
    #[error("{0}: another process has locked the file: end it, or try again later")]
    Locked(PathBuf),
    /// The path no longer names the file that this process has opened.
    #[error(
        "{0}: the file or its log was moved, removed or replaced while this process uses it: creates and lookups of \
         API keys get 503 until it is back. Move it back; to use another file, stop the service, move the log (-wal) \
         away, and start it again"
    )]
    Replaced(PathBuf),
    /// The disk is full.
    #[error("{0}: the disk is full: free some space")]
    Full(PathBuf),
    /// The file cannot be created, read or written for another reason.
    #[error("{0}: {1}: check the path, the disk and the limits of this process, and try again")]
    Unavailable(PathBuf, String),
}

impl SqliteFileError {
    /// Classifies an error by the message of SQLite.
    pub(crate) fn of(path: &Path, error: &impl ToString) -> Self {
        let (path, message) = (path.to_owned(), error.to_string());
        match &*message {
            text if text.contains(NOT_A_DATABASE) => Self::NotADatabase(path),
            text if is_corrupt(text) => Self::Corrupt(path, message),
            text if text.contains(LOCKED) => Self::Locked(path),
            text if text.contains(READ_ONLY) || text.contains(CANNOT_OPEN) => Self::NotWritable(path, message),
            text if text.contains(FULL) => Self::Full(path),
            _ => Self::Unavailable(path, message),
        }
    }

    pub(super) fn of_creation(path: &Path, error: &io::Error) -> Self {
        let (path, reason) = (path.to_owned(), error.to_string());
        match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::NotWritable(path, reason),
            ErrorKind::StorageFull => Self::Full(path),
            _ => Self::Unavailable(path, reason),
        }
    }
}

/// Whether SQLite found a page or a schema that is not valid.
pub(crate) fn is_corrupt(message: &str) -> bool {
    let damages = [NOT_A_DATABASE, "database disk image is malformed", "malformed database schema"];
    damages.iter().any(|damage| message.contains(damage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_sqlite_is_classified_with_the_path() {
        let classify = |message| SqliteFileError::of(Path::new("x"), &message);
        assert!(matches!(classify("unable to open database file"), SqliteFileError::NotWritable(..)));
        assert!(matches!(classify("attempt to write a readonly database"), SqliteFileError::NotWritable(..)));
        assert!(matches!(classify("database or disk is full"), SqliteFileError::Full(..)));
        assert!(matches!(classify("disk I/O error"), SqliteFileError::Unavailable(..)));
    }
}
