use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::error::{CANNOT_OPEN, FULL, LOCKED, NOT_A_DATABASE, READ_ONLY, is_corrupt};

/// The file cannot be used. Each message says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SqliteFileError {
    /// There is no file.
    #[error("{path}: the file does not exist: check storage.sqlite.path and the working directory")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// There is no file, or an empty one, or one without a log, but the log of another one.
    #[error(
        "{path}: the file of the log {log} is missing, empty or replaced: the last pets may be in the log. Put the \
         file back beside its log; to use another file, or to make a new one, move the log away first"
    )]
    Lost {
        /// The file.
        path: PathBuf,
        /// Its log.
        log: PathBuf,
    },
    /// The folder does not exist.
    #[error("{path}: the folder does not exist: create it, or change storage.sqlite.path")]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// The user of this process has too few permissions, or the disk is read-only.
    #[error(
        "{path}: this user cannot read and write the file and its folder ({reason}): run as the owner of the file, and \
         allow this user to write to the folder, because SQLite keeps its log beside the file"
    )]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// The message of the operating system or of SQLite.
        reason: String,
    },
    /// The path names a folder.
    #[error("{path}: this is a folder: add the name of a file to storage.sqlite.path")]
    IsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The file is not an SQLite database.
    #[error("{path}: the file is not an SQLite database: change storage.sqlite.path, or restore a backup")]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// Another program made the database.
    #[error("{path}: the file is an SQLite database of another program: change storage.sqlite.path")]
    OtherProgram {
        /// The file.
        path: PathBuf,
    },
    /// A program from before the first release made the file.
    #[error(
        "{path}: a program from before version 0.1.0 made this file: write its pets with that program (animal-store \
         pets export --output FILE), and import FILE into a new file with this one (animal-store pets import FILE)"
    )]
    OlderLayout {
        /// The file.
        path: PathBuf,
    },
    /// These migrations are pending, and this command does not run them.
    #[error("{path}: these migrations are pending: {}; run animal-store migrate", .migrations.join(", "))]
    Pending {
        /// The file.
        path: PathBuf,
        /// Their versions.
        migrations: Vec<String>,
    },
    /// A newer program changed the schema by these migrations.
    #[error(
        "{path}: a newer program has made changes that this one cannot work with: {}; use its release, or restore a \
         backup",
        .migrations.join(", ")
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Their versions.
        migrations: Vec<String>,
    },
    /// A migration failed. It had no effect.
    #[error(
        "{path}: the schema cannot be brought up to date: {reason}. Nothing was changed: examine the file with \
         animal-store doctor, or use the earlier release"
    )]
    Migration {
        /// The file.
        path: PathBuf,
        /// The message of SQLite.
        reason: String,
    },
    /// The file is damaged.
    #[error("{path}: the file is damaged ({reason}): restore a backup, or save what can be read with sqlite3 .recover")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// Another process kept its lock for the whole timeout.
    #[error("{path}: another process has locked the file: end it, or try again later")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The path no longer names the file that this process has opened.
    #[error(
        "{path}: the file or its log was moved, removed or replaced while this process uses it: creates and lookups of \
         API keys get 503 until it is back. Move it back; to use another file, stop the service, move the log (-wal) \
         away, and start it again"
    )]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("{path}: the disk is full: free some space")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be created, read or written for another reason.
    #[error("{path}: {reason}: check the path, the disk and the limits of this process, and try again")]
    Unavailable {
        /// The file.
        path: PathBuf,
        /// What failed.
        reason: String,
    },
}

impl SqliteFileError {
    /// Classifies a message of SQLite.
    pub(crate) fn from_message(path: &Path, message: &str) -> Self {
        let (path, reason) = (path.to_owned(), message.to_owned());
        match message {
            _ if message.contains(NOT_A_DATABASE) => Self::NotADatabase { path },
            _ if is_corrupt(message) => Self::Corrupt { path, reason },
            _ if message.contains(LOCKED) => Self::Locked { path },
            _ if message.contains(READ_ONLY) || message.contains(CANNOT_OPEN) => Self::NotWritable { path, reason },
            _ if message.contains(FULL) => Self::Full { path },
            _ => Self::Unavailable { path, reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_sqlite_is_classified_with_the_path() {
        let classify = |path: &str, message: &str| SqliteFileError::from_message(Path::new(path), message);
        assert!(matches!(classify("x", "unable to open database file"), SqliteFileError::NotWritable { .. }));
        let read_only = "attempt to write a readonly database";
        assert!(matches!(classify("/", read_only), SqliteFileError::NotWritable { .. }));
        assert!(matches!(classify("x", "database or disk is full"), SqliteFileError::Full { .. }));
        assert!(matches!(classify("x", "disk I/O error"), SqliteFileError::Unavailable { .. }));
    }
}
