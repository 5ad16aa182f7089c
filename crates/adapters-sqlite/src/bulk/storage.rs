use std::sync::{Arc, Mutex, PoisonError};

use animal_store_app::ports::{BulkStorage, IdempotencyRecord, StorageSnapshot, StoreFailure, StoredPet};
use async_trait::async_trait;
use diesel::{
    prelude::*,
    result::{DatabaseErrorKind, Error},
};

use super::{BulkError, IdTaken, port_error, records, snapshot::SqliteSnapshot};
use crate::{
    SqliteFile,
    change::{AccessError, change, run_blocking},
    file::FileConnection,
    pet_row::NewPetRow,
    schema::tables::pets,
};

/// SQLite allows 32,766 values in a statement, and a pet has five.
const ROWS_PER_STATEMENT: usize = 500;

/// Adds pets and records to a file in bulk. Other connections may use the file at the same time.
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

    /// Makes a change in one commit.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, BulkError> + Send + 'static,
    ) -> Result<T, StoreFailure> {
        let (file, writer) = (self.file.clone(), Arc::clone(&self.writer));
        let changed = run_blocking(move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            // After a failure or a panic the next change opens another connection.
            let mut connection = writer.take().map_or_else(|| file.connect(), Ok)?;
            let changed = change(&file, &mut connection, work)?;
            *writer = Some(connection);
            Ok(changed)
        });
        changed.await.map_err(|error| port_error(error, &self.file))
    }
}

#[async_trait]
impl BulkStorage for SqliteBulkStorage {
    async fn check_writable(&self) -> Result<(), StoreFailure> {
        self.change(|_| Ok(())).await
    }

    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, StoreFailure> {
        Ok(Box::new(SqliteSnapshot::open(self.file.clone()).await?))
    }

    async fn add_pets(&self, pets: Vec<StoredPet>) -> Result<(), StoreFailure> {
        self.change(move |connection| add_pets(connection, &pets)).await
    }

    async fn add_idempotency_records(&self, records: Vec<IdempotencyRecord>) -> Result<(), StoreFailure> {
        self.change(move |connection| records::add(connection, &records)).await
    }
}

/// A statement with many rows takes less than half of the time of one statement for each row.
fn add_pets(connection: &mut SqliteConnection, pets: &[StoredPet]) -> Result<(), BulkError> {
    for pets in pets.chunks(ROWS_PER_STATEMENT) {
        let rows = pets.iter().map(|StoredPet { pet, created_at }| {
            (pets::id.eq(pet.id().get()), NewPetRow::from_pet(pet.new_pet(), created_at.micros()))
        });
        let rows: Vec<_> = rows.collect();
        match diesel::insert_into(pets::table).values(rows).execute(connection) {
            Err(Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => {
                return Err(AccessError::Refused(IdTaken));
            }
            result => result?,
        };
    }
    Ok(())
}
