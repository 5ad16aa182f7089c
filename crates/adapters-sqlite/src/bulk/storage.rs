use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use animal_store_app::ports::{
    AddedBulkPet, BulkStorage, BulkStorageError, IdempotencyRecord, ImportProgress, ImportSource, PetBatch,
    StorageSnapshot,
};
use async_trait::async_trait;
use diesel::SqliteConnection;

use super::{
    connection::connect,
    error::{BulkError, port_error},
    idempotency_records, imports, pets,
    snapshot::SqliteSnapshot,
    snapshot_file::{self, SnapshotFileError},
};
use crate::{
    SqliteFile,
    change::{change, run_blocking},
    file::FileConnection,
};

/// Reads and writes the pets of a file in bulk. Other connections may use the file at the same time.
pub struct SqliteBulkStorage {
    file: SqliteFile,
    /// The connection of the last change, unless it failed.
    writer: Arc<Mutex<Option<FileConnection>>>,
}

impl SqliteBulkStorage {
    /// Creates the storage.
    pub fn new(file: SqliteFile) -> Self {
        Self { file, writer: Arc::default() }
    }

    /// Writes the committed content of the file, including the API keys, into a new file with mode 0600. Creates go on
    /// meanwhile. The new file appears when it is complete and on the disk.
    ///
    /// # Errors
    /// [`SnapshotFileError`] if the target exists or cannot be written, or if the file cannot be read.
    pub async fn write_snapshot(&self, target: &Path) -> Result<(), SnapshotFileError> {
        snapshot_file::write(self.file.clone(), target.to_owned()).await
    }

    /// Makes a change in one commit.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, BulkError> + Send + 'static,
    ) -> Result<T, BulkStorageError> {
        let (file, writer) = (self.file.clone(), Arc::clone(&self.writer));
        let changed = run_blocking(move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            // After a failure or a panic the next change opens another connection.
            let mut connection = writer.take().map_or_else(|| connect(&file), Ok)?;
            let changed = change(&mut connection, file.timeout(), work)?;
            *writer = Some(connection);
            Ok(changed)
        });
        changed.await.map_err(|error| port_error(error, &self.file))
    }
}

#[async_trait]
impl BulkStorage for SqliteBulkStorage {
    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, BulkStorageError> {
        Ok(Box::new(SqliteSnapshot::open(self.file.clone()).await?))
    }

    async fn add_pets(&self, batch: PetBatch) -> Result<Vec<AddedBulkPet>, BulkStorageError> {
        self.change(move |connection| {
            if let Some(step) = batch.step {
                imports::advance(connection, step)?;
            }
            pets::add(connection, &batch.pets, batch.refuse_taken_ids)
        })
        .await
    }

    async fn add_idempotency_records(&self, records: Vec<IdempotencyRecord>) -> Result<(), BulkStorageError> {
        self.change(move |connection| idempotency_records::add(connection, &records)).await
    }

    async fn import_progress(&self, source: ImportSource) -> Result<Option<ImportProgress>, BulkStorageError> {
        self.change(move |connection| imports::progress(connection, source)).await
    }

    async fn finish_import(&self, source: ImportSource) -> Result<(), BulkStorageError> {
        self.change(move |connection| imports::finish(connection, source)).await
    }
}
