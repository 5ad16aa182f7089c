//! Shared parts of the transfers of pets: an export, an import, a copy and a backup.

#[cfg(test)]
pub(crate) mod test_observer;

use std::{io, ops::ControlFlow};

use animal_store_domain::PetId;
use thiserror::Error;

use crate::{
    PetsDigest,
    ports::{ApiKeyStoreError, BulkStorageError},
};

/// Number of lines of an import in one commit: large enough that a commit is cheap, small enough for the memory. Unit
/// tests need several batches, but not their size.
pub(crate) const BATCH_SIZE: usize = if cfg!(test) { 50 } else { 5_000 };

/// Number of pets or records in a page, and in a commit of a copy, which has several pages in memory at once.
pub(crate) const PAGE_SIZE: usize = if cfg!(test) { 25 } else { 2_500 };

/// Follows a transfer, and can stop it.
pub trait TransferObserver: Send {
    /// A pass over the pets begins. `pets` is their number, if it is known.
    fn started(&mut self, _pass: TransferPass, _pets: Option<u64>) {}

    /// This number of pets of the pass, or of lines of an import, is done. `Break` stops the transfer, and everything
    /// that is done stays.
    fn advanced(&mut self, pets: u64) -> ControlFlow<()>;
}

/// Follows an import, and can stop it.
pub trait ImportObserver: TransferObserver {
    /// A line was not imported. `reason` is for people.
    fn refused(&mut self, line: u64, reason: &str);
}

/// A pass over the pets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferPass {
    /// Compares both sides, before anything is written.
    Check,
    /// Reads pets and writes them to the other side.
    Transfer,
    /// Compares both sides at the end.
    Verification,
}

/// Result of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferSummary {
    /// Number of pets.
    pub pets: u64,
    /// Digest of these pets.
    pub digest: PetsDigest,
    /// Whether the observer stopped the transfer before its end.
    pub stopped: bool,
}

/// The transfer failed.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The storage that is read failed.
    #[error("the pets cannot be read")]
    Source(#[source] BulkStorageError),
    /// The storage that is written failed. The same transfer may be repeated.
    #[error("the pets cannot be written")]
    Target(#[source] BulkStorageError),
    /// The API keys cannot be read.
    #[error("the API keys cannot be read")]
    ApiKeys(#[source] ApiKeyStoreError),
    /// The file cannot be written.
    #[error("the file cannot be written")]
    File(#[source] io::Error),
    /// The target has a pet that the source does not have, or another one with the same id. Unless a client added it
    /// during the copy, nothing was written.
    #[error("the target contains other pets, for example the one with the id {}: choose an empty target", .0.get())]
    OtherPets(PetId),
    /// Both sides differ after the copy.
    #[error(
        "the target differs from the source after the copy: {target_pets} pets instead of {source_pets}, or one of \
         them was changed. Stop the services that use them and repeat the command"
    )]
    Differs {
        /// Number of pets in the source.
        source_pets: u64,
        /// Number of pets in the target.
        target_pets: u64,
    },
}
