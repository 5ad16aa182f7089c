use std::{
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use animal_store_app::{
    IdempotencyKey,
    ports::{BulkStorageError, IdempotencyRecord, StorageSnapshot, StoredPet},
};
use animal_store_domain::PetId;
use async_trait::async_trait;
use diesel::{SqliteConnection, connection::SimpleConnection};

use super::{
    connection::connect,
    error::{BulkError, port_error},
    idempotency_records, pets,
};
use crate::{SqliteFile, change::run_blocking, file::FileConnection};

/// A read transaction on a connection of its own. While it is open, the log (`-wal`) cannot be reset and grows.
pub(super) struct SqliteSnapshot {
    file: SqliteFile,
    connection: Arc<Mutex<FileConnection>>,
    opened: SystemTime,
}

impl SqliteSnapshot {
    pub(super) async fn open(file: SqliteFile) -> Result<Self, BulkStorageError> {
        let opening = file.clone();
        let connection = run_blocking(move || {
            let mut connection = connect(&opening)?;
            // The first read, and not BEGIN, decides which state the transaction shows.
            connection.batch_execute("BEGIN; SELECT id FROM pets LIMIT 1")?;
            Ok(connection)
        });
        let connection = connection.await.map_err(|error| port_error(error, &file))?;
        Ok(Self { file, connection: Arc::new(Mutex::new(connection)), opened: SystemTime::now() })
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, BulkError> + Send + 'static,
    ) -> Result<T, BulkStorageError> {
        let connection = Arc::clone(&self.connection);
        let read = run_blocking(move || work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner)));
        read.await.map_err(|error| port_error(error, &self.file))
    }
}

#[async_trait]
impl StorageSnapshot for SqliteSnapshot {
    async fn pets(&mut self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, BulkStorageError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(move |connection| pets::read(connection, after, limit)).await
    }

    async fn idempotency_records(
        &mut self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, BulkStorageError> {
        let (limit, opened) = (i64::try_from(limit).unwrap_or(i64::MAX), self.opened);
        self.read(move |connection| idempotency_records::read(connection, after.as_ref(), limit, opened)).await
    }
}
