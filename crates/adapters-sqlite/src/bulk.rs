//! The content of the file in bulk, for copies and backups, while the service uses the file.
//!
//! **Problem.** A copy takes minutes, and pets are added meanwhile. It may be interrupted at any moment.
//!
//! **Invariant.** A snapshot is one read transaction, so each of its pages shows the same state (`snapshot`). Pets and
//! records that are added are one commit each. A backup gets its name when it is complete (`backup`). Calls hold at
//! most one page in memory.
//!
//! **Proof.** The contract suite `bulk_storage`, and `tests/sqlite/bulk.rs`.

mod backup;
mod records;
mod snapshot;

use animal_store_app::ports::{BulkStorage, IdempotencyRecord, StorageSnapshot, StoreFailure, StoredPet};
use async_trait::async_trait;
use diesel::{
    prelude::*,
    result::{DatabaseErrorKind, Error},
};
use tokio::sync::Mutex;

pub use self::{
    backup::{BackupError, NewBackup},
    snapshot::SqliteSnapshot,
};
use crate::{
    SqliteFile,
    access::{AccessError, Session},
    pet_row::NewPetRow,
    tables::pets,
};

/// SQLite allows 32,766 values in a statement, and a pet has five.
const ROWS_PER_STATEMENT: usize = 500;

/// Adds pets and records to a file in bulk. Other connections may use the file at the same time.
pub struct SqliteBulkStorage {
    file: SqliteFile,
    session: Mutex<Session>,
}

impl SqliteBulkStorage {
    /// Creates the storage.
    pub fn new(file: SqliteFile) -> Self {
        Self { session: Mutex::new(Session::new(&file)), file }
    }

    /// Makes a change in one commit.
    async fn change(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> QueryResult<()> + Send + 'static,
    ) -> Result<(), AccessError> {
        self.session.lock().await.change(work).await
    }
}

#[async_trait]
impl BulkStorage for SqliteBulkStorage {
    async fn check_writable(&self) -> Result<(), StoreFailure> {
        self.change(|_| Ok(())).await.map_err(|error| error.failure(self.file.path()))
    }

    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, StoreFailure> {
        Ok(Box::new(SqliteSnapshot::open(self.file.clone()).await?))
    }

    async fn add_pets(&self, pets: Vec<StoredPet>) -> Result<bool, StoreFailure> {
        match self.change(move |connection| add_pets(connection, &pets)).await {
            Ok(()) => Ok(true),
            Err(AccessError::Statement(Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _))) => Ok(false),
            Err(error) => Err(error.failure(self.file.path())),
        }
    }

    async fn add_idempotency_records(&self, records: Vec<IdempotencyRecord>) -> Result<(), StoreFailure> {
        let added = self.change(move |connection| records::add(connection, &records)).await;
        added.map_err(|error| error.failure(self.file.path()))
    }
}

/// A statement with many rows takes less than half of the time of one statement for each row.
fn add_pets(connection: &mut SqliteConnection, pets: &[StoredPet]) -> QueryResult<()> {
    for pets in pets.chunks(ROWS_PER_STATEMENT) {
        let rows = pets.iter().map(|StoredPet { pet, created_at }| {
            (pets::id.eq(pet.id().get()), NewPetRow::from_pet(pet.new_pet(), created_at.micros()))
        });
        diesel::insert_into(pets::table).values(rows.collect::<Vec<_>>()).execute(connection)?;
    }
    Ok(())
}
