use std::path::{Path, PathBuf};

use animal_store_app::{
    BackupSummary,
    ports::{
        AddedBulkPet, ApiKeyRecord, ApiKeyStoreError, BulkApiKeys, BulkStorage, BulkStorageError, Cause,
        IdempotencyRecord, ImportProgress, ImportSource, PetBatch, PetFileError, StorageSnapshot,
    },
};
use async_trait::async_trait;

use super::{
    reader::{BackupReader, LineKind},
    snapshot::BackupSnapshot,
};

/// A complete backup, as a storage and a store of API keys that can only be read. Reading blocks.
#[derive(Debug)]
pub struct BackupFile {
    path: PathBuf,
    summary: BackupSummary,
}

impl BackupFile {
    /// Opens a backup and reads it to its end, to check its lines and its digest. Blocks, for large files for minutes.
    ///
    /// # Errors
    /// See [`PetFileError`].
    pub fn open(path: &Path) -> Result<Self, PetFileError> {
        Ok(Self { path: path.to_owned(), summary: BackupReader::open(path)?.check()? })
    }

    /// Number of lines of each kind.
    pub const fn summary(&self) -> BackupSummary {
        self.summary
    }

    fn read_api_keys(&self) -> Result<Vec<ApiKeyRecord>, PetFileError> {
        let mut reader = BackupReader::open(&self.path)?;
        let mut keys = Vec::new();
        loop {
            match reader.advance()? {
                LineKind::ApiKey => keys.push(reader.api_key()?),
                LineKind::End => return Ok(keys),
                LineKind::Pet | LineKind::IdempotencyRecord => {}
            }
        }
    }
}

fn read_only() -> Cause {
    "a backup cannot be changed".into()
}

#[async_trait]
impl BulkStorage for BackupFile {
    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, BulkStorageError> {
        Ok(Box::new(BackupSnapshot::open(self.path.clone())?))
    }

    async fn add_pets(&self, _: PetBatch) -> Result<Vec<AddedBulkPet>, BulkStorageError> {
        Err(BulkStorageError::Unavailable(read_only()))
    }

    async fn add_idempotency_records(&self, _: Vec<IdempotencyRecord>) -> Result<(), BulkStorageError> {
        Err(BulkStorageError::Unavailable(read_only()))
    }

    async fn import_progress(&self, _: ImportSource) -> Result<Option<ImportProgress>, BulkStorageError> {
        Err(BulkStorageError::Unavailable(read_only()))
    }

    async fn finish_import(&self, _: ImportSource) -> Result<(), BulkStorageError> {
        Err(BulkStorageError::Unavailable(read_only()))
    }
}

#[async_trait]
impl BulkApiKeys for BackupFile {
    async fn export(&self) -> Result<Vec<ApiKeyRecord>, ApiKeyStoreError> {
        self.read_api_keys().map_err(|error| ApiKeyStoreError::Unavailable(error.into()))
    }

    async fn import(&self, _: Vec<ApiKeyRecord>) -> Result<usize, ApiKeyStoreError> {
        Err(ApiKeyStoreError::Unavailable(read_only()))
    }
}
