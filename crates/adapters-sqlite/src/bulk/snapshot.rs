use std::{
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use animal_store_adapter_kit::CorruptRow;
use animal_store_app::{
    IdempotencyKey,
    ports::{IdempotencyRecord, StorageSnapshot, StoreFailure, StoredPet},
};
use animal_store_domain::{CreationTime, Pet, PetId};
use async_trait::async_trait;
use diesel::{connection::SimpleConnection, prelude::*};
use tokio::task::spawn_blocking;

use super::records;
use crate::{
    SqliteFile,
    access::{AccessError, corrupt},
    pet_row::PetRow,
    tables::pets,
};

/// Size of the page cache, in KiB. Pages are read in order of id, so a larger one only takes memory.
const CACHE_SIZE: u32 = 1 << 10;

/// A read transaction on a connection of its own. While it is open, the log (`-wal`) cannot be reset and grows.
pub struct SqliteSnapshot {
    file: SqliteFile,
    /// With the file, which is closed after it.
    connection: Arc<Mutex<(SqliteConnection, SqliteFile)>>,
    opened: SystemTime,
}

impl SqliteSnapshot {
    /// Opens a consistent view of everything that is committed now.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn open(file: SqliteFile) -> Result<Self, StoreFailure> {
        let opening = file.clone();
        let opened = spawn_blocking(move || {
            let mut connection = opening.connect()?;
            // The first read, and not BEGIN, decides which state the transaction shows.
            let begin = format!("PRAGMA cache_size = -{CACHE_SIZE}; BEGIN; SELECT id FROM pets LIMIT 1");
            connection.batch_execute(&begin)?;
            Ok((connection, opening))
        });
        let opened = opened.await.map_err(AccessError::from).flatten();
        let connection = opened.map_err(|error| error.failure(file.path()))?;
        Ok(Self { file, connection: Arc::new(Mutex::new(connection)), opened: SystemTime::now() })
    }

    /// Reads in the transaction, also after a failure.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, StoreFailure> {
        let connection = Arc::clone(&self.connection);
        let read = spawn_blocking(move || Ok(work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner).0)?));
        read.await.map_err(AccessError::from).flatten().map_err(|error| error.failure(self.file.path()))
    }
}

#[async_trait]
impl StorageSnapshot for SqliteSnapshot {
    async fn pets(&self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, StoreFailure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(move |connection| read_pets(connection, after, limit)).await
    }

    async fn idempotency_records(
        &self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, StoreFailure> {
        let (limit, opened) = (i64::try_from(limit).unwrap_or(i64::MAX), self.opened);
        self.read(move |connection| records::read(connection, after.as_ref(), limit, opened)).await
    }
}

fn read_pets(connection: &mut SqliteConnection, after: Option<PetId>, limit: i64) -> QueryResult<Vec<StoredPet>> {
    // Includes rows with invalid ids, so that they are reported.
    let after = after.map_or(i64::MIN, PetId::get);
    let page = pets::table.filter(pets::id.gt(after)).order(pets::id).limit(limit);
    let page = page.select((PetRow::as_select(), pets::created_at));
    page.load_iter::<(PetRow, i64), _>(connection)?.map(|row| parse(row?)).collect()
}

/// `created_at`: in microseconds since 1970.
fn parse((row, created_at): (PetRow, i64)) -> QueryResult<StoredPet> {
    let pet = Pet::try_from(row)?;
    let id = pet.id().get();
    let invalid = |problem| corrupt(CorruptRow { column: "created_at", id, problem });
    let created_at = CreationTime::parse(created_at).map_err(|error| invalid(error.to_string()))?;
    Ok(StoredPet { pet, created_at })
}
