use std::sync::{Mutex, PoisonError};

use animal_store_app::ports::{
    AddedBulkPet, BulkStorage, BulkStorageError, IdempotencyRecord, ImportProgress, ImportSource, PetBatch,
    StorageSnapshot,
};
use async_trait::async_trait;

use super::{bulk_connection::BulkConnection, import_steps, pet_batch, records, snapshot::PgSnapshot};
use crate::{PgEndpoint, PostgresSettings, connection::application_name};

/// The content of a database, in bulk. The schema has to be up to date.
///
/// Each snapshot has a connection of its own. A connection for writes is kept for the next write.
pub struct PgBulkStorage {
    endpoint: PgEndpoint,
    settings: PostgresSettings,
    idle: Mutex<Option<BulkConnection>>,
}

impl PgBulkStorage {
    /// Creates the storage. Of the settings, it uses the timeouts and `transaction_pooling`.
    pub fn new(endpoint: PgEndpoint, settings: PostgresSettings) -> Self {
        let endpoint = endpoint.with_application_name(&application_name(settings.transaction_pooling));
        Self { endpoint, settings, idle: Mutex::default() }
    }

    async fn open(&self) -> Result<BulkConnection, BulkStorageError> {
        BulkConnection::open(&self.endpoint, &self.settings).await
    }

    /// Returns a connection for a write. After an error it is dropped, which rolls back its transaction.
    async fn connection(&self) -> Result<BulkConnection, BulkStorageError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        match idle.filter(|connection| !connection.is_closed()) {
            Some(connection) => Ok(connection),
            None => self.open().await,
        }
    }

    /// Keeps a connection on which no transaction is open.
    fn keep(&self, connection: BulkConnection) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
    }
}

#[async_trait]
impl BulkStorage for PgBulkStorage {
    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, BulkStorageError> {
        Ok(Box::new(PgSnapshot::begin(self.open().await?).await?))
    }

    async fn add_pets(&self, batch: PetBatch) -> Result<Vec<AddedBulkPet>, BulkStorageError> {
        let connection = self.connection().await?;
        let added = pet_batch::add(&connection, &batch).await?;
        self.keep(connection);
        Ok(added)
    }

    async fn add_idempotency_records(&self, records: Vec<IdempotencyRecord>) -> Result<(), BulkStorageError> {
        let connection = self.connection().await?;
        records::add(&connection, records).await?;
        self.keep(connection);
        Ok(())
    }

    async fn import_progress(&self, source: ImportSource) -> Result<Option<ImportProgress>, BulkStorageError> {
        let connection = self.connection().await?;
        let progress = import_steps::progress(&connection, source).await?;
        self.keep(connection);
        Ok(progress)
    }

    async fn finish_import(&self, source: ImportSource) -> Result<(), BulkStorageError> {
        let connection = self.connection().await?;
        import_steps::finish(&connection, source).await?;
        self.keep(connection);
        Ok(())
    }
}
