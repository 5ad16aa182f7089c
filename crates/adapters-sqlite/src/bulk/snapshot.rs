use std::{
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use animal_store_app::{
    CorruptRow, IdempotencyKey,
    ports::{
        ApiKeyRecord, ApiKeySource, ApiKeyStoreError, IdempotencyRecord, StorageSnapshot, StoreFailure, StoredPet,
    },
};
use animal_store_domain::{CreationTime, Pet, PetId};
use async_trait::async_trait;
use diesel::{connection::SimpleConnection, prelude::*};

use super::{BulkError, port_error, records};
use crate::{
    SqliteFile,
    change::{AccessError, run_blocking},
    file::FileConnection,
    keys,
    pet_row::PetRow,
    schema::tables::pets,
};

/// Size of the page cache, in KiB. Pages are read in order of id, so a larger one only takes memory.
const CACHE_SIZE: u32 = 1 << 10;

/// A read transaction on a connection of its own. While it is open, the log (`-wal`) cannot be reset and grows.
pub struct SqliteSnapshot {
    file: SqliteFile,
    connection: Arc<Mutex<FileConnection>>,
    opened: SystemTime,
}

impl SqliteSnapshot {
    /// Opens a consistent view of everything that is committed now.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn open(file: SqliteFile) -> Result<Self, StoreFailure> {
        let opening = file.clone();
        let connection = run_blocking(move || {
            let mut connection = opening.connect()?;
            // The first read, and not BEGIN, decides which state the transaction shows.
            let begin = format!("PRAGMA cache_size = -{CACHE_SIZE}; BEGIN; SELECT id FROM pets LIMIT 1");
            connection.batch_execute(&begin)?;
            Ok(connection)
        });
        let connection = connection.await.map_err(|error| port_error(error, &file))?;
        Ok(Self { file, connection: Arc::new(Mutex::new(connection)), opened: SystemTime::now() })
    }

    async fn read<T: Send + 'static, R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, AccessError<R>> + Send + 'static,
    ) -> Result<T, AccessError<R>> {
        let connection = Arc::clone(&self.connection);
        run_blocking(move || work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

#[async_trait]
impl StorageSnapshot for SqliteSnapshot {
    async fn pets(&self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, StoreFailure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let read = self.read(move |connection| read_pets(connection, after, limit));
        read.await.map_err(|error| port_error(error, &self.file))
    }

    async fn idempotency_records(
        &self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, StoreFailure> {
        let (limit, opened) = (i64::try_from(limit).unwrap_or(i64::MAX), self.opened);
        let read = self.read(move |connection| records::read(connection, after.as_ref(), limit, opened));
        read.await.map_err(|error| port_error(error, &self.file))
    }
}

/// The API keys of the same state.
#[async_trait]
impl ApiKeySource for SqliteSnapshot {
    async fn export(&self) -> Result<Vec<ApiKeyRecord>, ApiKeyStoreError> {
        let opened = self.opened;
        let read = self.read(move |connection| keys::records(connection, opened));
        read.await.map_err(|error| keys::port_error(error, &self.file))
    }
}

fn read_pets(connection: &mut SqliteConnection, after: Option<PetId>, limit: i64) -> Result<Vec<StoredPet>, BulkError> {
    // Includes rows with invalid ids, so that they are reported.
    let after = after.map_or(i64::MIN, PetId::get);
    let page = pets::table.filter(pets::id.gt(after)).order(pets::id).limit(limit);
    let page = page.select((PetRow::as_select(), pets::created_at));
    page.load_iter::<(PetRow, i64), _>(connection)?.map(|row| parse(row?)).collect()
}

/// `created_at`: in microseconds since 1970.
fn parse((row, created_at): (PetRow, i64)) -> Result<StoredPet, BulkError> {
    let pet = Pet::try_from(row).map_err(|error| match error {
        StoreFailure::Corrupt(cause) => AccessError::Corrupt(cause.to_string()),
        error => AccessError::Corrupt(error.to_string()),
    })?;
    let created_at = CreationTime::parse(created_at).map_err(|error| {
        let row = CorruptRow { column: "created_at", id: pet.id().get(), problem: error.to_string() };
        AccessError::Corrupt(row.to_string())
    })?;
    Ok(StoredPet { pet, created_at })
}
