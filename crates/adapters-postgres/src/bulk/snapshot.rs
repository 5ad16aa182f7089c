use animal_store_app::{
    IdempotencyKey,
    ports::{BulkStorageError, IdempotencyRecord, StorageError, StorageSnapshot, StoredPet},
};
use animal_store_domain::PetId;
use async_trait::async_trait;
use tokio_postgres::types::Type;

use super::{
    bulk_connection::{BulkConnection, Parameter},
    records,
};
use crate::pet_row::StoredPetRow;

/// A transaction that sees one state of the database.
pub(super) struct PgSnapshot(BulkConnection);

impl PgSnapshot {
    pub(super) async fn begin(connection: BulkConnection) -> Result<Self, BulkStorageError> {
        connection.begin_snapshot().await?;
        Ok(Self(connection))
    }
}

#[async_trait]
impl StorageSnapshot for PgSnapshot {
    async fn pets(&mut self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, BulkStorageError> {
        let select = format!("SELECT {} FROM pets WHERE id > $1 ORDER BY id LIMIT $2", StoredPetRow::COLUMNS);
        let (after, limit) = (after.map_or(0, PetId::get), i64::try_from(limit).unwrap_or(i64::MAX));
        stored_pets(&self.0, &select, &[(&after, Type::INT8), (&limit, Type::INT8)]).await
    }

    async fn idempotency_records(
        &mut self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, BulkStorageError> {
        records::page(&self.0, after, limit).await
    }
}

/// Runs a query of the columns [`StoredPetRow::COLUMNS`].
pub(super) async fn stored_pets(
    connection: &BulkConnection,
    select: &str,
    parameters: &[Parameter<'_>],
) -> Result<Vec<StoredPet>, BulkStorageError> {
    let rows = connection.query(select, parameters, "SELECT on pets").await?;
    let pet = |row| {
        let row = StoredPetRow::decode(row).map_err(|error| connection.unavailable(error))?;
        row.try_into().map_err(|error| match error {
            StorageError::Corrupt(cause) => BulkStorageError::Corrupt(cause),
            error => BulkStorageError::Unavailable(error.into()),
        })
    };
    rows.iter().map(pet).collect()
}
