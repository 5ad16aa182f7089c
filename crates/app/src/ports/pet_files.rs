use std::io;

use thiserror::Error;

use super::{ApiKeyRecord, BulkPet, IdempotencyRecord, ImportSource, StoredPet};
use crate::PetsDigest;

/// A file that an export writes. A file that is not finished does not pass as a complete one.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
pub trait PetSink: Send {
    /// Writes pets, in ascending order of id.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn write(&mut self, pets: &[StoredPet]) -> io::Result<()>;

    /// Writes the end, with the number of pets and their digest, and flushes the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn finish(&mut self, pets: u64, digest: PetsDigest) -> io::Result<()>;
}

/// A file that a backup writes: first pets, then records of idempotency keys, then API keys. A file that is not
/// finished does not pass as a complete one.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
pub trait BackupSink: Send {
    /// Writes pets, in ascending order of id.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn write_pets(&mut self, pets: &[StoredPet]) -> io::Result<()>;

    /// Writes records of idempotency keys, in ascending order of their keys.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn write_idempotency_records(&mut self, records: &[IdempotencyRecord]) -> io::Result<()>;

    /// Writes API keys, with the digests of their tokens.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn write_api_keys(&mut self, keys: &[ApiKeyRecord]) -> io::Result<()>;

    /// Writes the end, with the number of lines of each kind and the digest of the file, and flushes the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

/// A file that an import reads line by line.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
pub trait PetSource: Send {
    /// Identifies the file: SHA-256 digest of its first 64 KiB, or of all of it if it is shorter.
    fn id(&self) -> ImportSource;

    /// Returns the next line that should contain a pet. `None`: the file is complete. An id is required with
    /// `ids`, and without it ignored.
    ///
    /// # Errors
    /// See [`PetFileError`]. No line follows an error.
    fn next_line(&mut self, ids: bool) -> Result<Option<PetLine>, PetFileError>;
}

/// A line of a [`PetSource`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PetLine {
    /// Line number in the file, from 1.
    pub number: u64,
    /// Digest of this line and all lines with pets before it.
    pub digest: [u8; 32],
    /// The pet, or every reason why the line contains no valid one, for people.
    pub pet: Result<BulkPet, String>,
}

/// A file of pets or a backup cannot be read, or not to its end.
#[derive(Debug, Error)]
pub enum PetFileError {
    /// Reading failed.
    #[error("the file cannot be read")]
    Unreadable(#[source] io::Error),
    /// The file contains something else. The text says what was expected.
    #[error("{0}")]
    Format(String),
    /// A newer release wrote the file.
    #[error("the file has version {0}, which this release cannot read: use a newer release of the animal store")]
    NewerVersion(u64),
    /// The end of the file is missing, or does not match its content.
    #[error("the file is incomplete or was changed: {0}")]
    Incomplete(String),
}
