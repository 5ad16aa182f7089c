use animal_store_app::ports::{
    AddedBulkPet, BulkStorage, BulkStorageError, IdempotencyRecord, ImportProgress, ImportSource, PetBatch,
    StorageSnapshot,
};
use async_trait::async_trait;

/// The storage of a dry run, which neither reads nor writes one: every call fails.
pub(in crate::cli) struct NoStorage;

fn unavailable<T>() -> Result<T, BulkStorageError> {
    Err(BulkStorageError::Unavailable("a dry run opens no storage".into()))
}

#[async_trait]
impl BulkStorage for NoStorage {
    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, BulkStorageError> {
        unavailable()
    }

    async fn add_pets(&self, _: PetBatch) -> Result<Vec<AddedBulkPet>, BulkStorageError> {
        unavailable()
    }

    async fn add_idempotency_records(&self, _: Vec<IdempotencyRecord>) -> Result<(), BulkStorageError> {
        unavailable()
    }

    async fn import_progress(&self, _: ImportSource) -> Result<Option<ImportProgress>, BulkStorageError> {
        unavailable()
    }

    async fn finish_import(&self, _: ImportSource) -> Result<(), BulkStorageError> {
        unavailable()
    }
}
