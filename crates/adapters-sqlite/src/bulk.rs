//! The content of the file in bulk, for copies, while the service uses the file.
//!
//! **Problem.** A copy takes minutes, and pets are added meanwhile. It may be interrupted at any moment.
//!
//! **Invariant.** A snapshot is one read transaction, so each of its pages shows the same state. Pets and records that
//! are added are one commit each. Calls hold at most one page in memory.
//!
//! **Proof.** The contract suite `bulk_storage`, and `tests/sqlite/bulk.rs`.

use std::time::SystemTime;

use animal_store_adapter_kit::CorruptRow;
use animal_store_app::{
    IdempotencyKey,
    ports::{BulkStorage, IdempotencyRecord, StorageSnapshot, StoreFailure, StoredPet},
};
use animal_store_domain::{CreationTime, Pet, PetId};
use async_trait::async_trait;
use diesel::{connection::SimpleConnection, prelude::*};

use crate::{
    SqliteFile, SqliteFileError,
    creates::idempotency,
    error::{Problem, corrupt},
    file::Disk,
    pet_row::{NewPetRow, PetRow, pets},
    schema,
    session::Session,
    values::{has_table, number},
};

/// SQLite allows 32,766 values in a statement, and a pet has five.
const ROWS_PER_STATEMENT: usize = 500;

/// Size of the page cache of a snapshot, in KiB. Pages are read in order of id, so a larger one only takes memory.
const CACHE_SIZE: u32 = 1 << 10;

/// The greatest id that was given out, or 0.
const LAST_ID: &str = "SELECT coalesce(max(id), 0) FROM
    (SELECT max(id) AS id FROM pets UNION ALL SELECT seq FROM sqlite_sequence WHERE name = 'pets')";

/// Reads a file, and adds pets and records to it, in bulk. Other connections may use the file at the same time.
pub struct SqliteBulkStorage(Session);

/// A read transaction on a connection of its own. While it is open, the log (`-wal`) cannot be reset and grows.
struct Snapshot {
    session: Session,
    opened: SystemTime,
}

impl SqliteBulkStorage {
    /// Creates the storage.
    pub fn new(file: &SqliteFile) -> Self {
        Self(Session::new(file))
    }

    /// Adds rows, if the disk has space for them beside its reserve.
    async fn add(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> Result<(), Problem> + Send + 'static,
    ) -> Result<(), SqliteFileError> {
        let path = self.0.file.path();
        Disk::check(path, 0).map_err(|problem| problem.at(path))?;
        self.0.change(work).await
    }
}

#[async_trait]
impl BulkStorage for SqliteBulkStorage {
    async fn newer_migrations(&self) -> Result<Vec<String>, StoreFailure> {
        Ok(self.0.read(schema::compare).await?.newer)
    }

    async fn check_writable(&self) -> Result<(), StoreFailure> {
        Ok(self.0.try_change().await?)
    }

    async fn mark_copy(&self, is_unfinished: bool) -> Result<(), StoreFailure> {
        let create = "CREATE TABLE IF NOT EXISTS unfinished_copy (id INTEGER)";
        let mark = if is_unfinished {
            create
        } else {
            "DROP TABLE IF EXISTS unfinished_copy"
        };
        Ok(self
            .0
            .change(|connection| connection.batch_execute(mark))
            .await?)
    }

    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, StoreFailure> {
        let session = Session::new(&self.0.file);
        // The first read, and not BEGIN, decides which state the transaction shows.
        let begin =
            format!("PRAGMA cache_size = -{CACHE_SIZE}; BEGIN; SELECT id FROM pets LIMIT 1");
        session
            .run_on_connection(move |_, connection| Ok(connection.batch_execute(&begin)?))
            .await?;
        Ok(Box::new(Snapshot {
            session,
            opened: SystemTime::now(),
        }))
    }

    async fn skip_ids(&self, last: PetId) -> Result<(), StoreFailure> {
        let last = last.get();
        let skip = format!(
            "INSERT INTO sqlite_sequence (name, seq)
                SELECT 'pets', 0 WHERE NOT EXISTS (SELECT * FROM sqlite_sequence WHERE name = 'pets');
            UPDATE sqlite_sequence SET seq = {last} WHERE name = 'pets' AND seq < {last}"
        );
        Ok(self
            .add(move |connection| Ok(connection.batch_execute(&skip)?))
            .await?)
    }

    async fn add_pets(&self, pets: Vec<StoredPet>) -> Result<bool, StoreFailure> {
        match self
            .add(move |connection| add_pets(connection, &pets))
            .await
        {
            Err(error) if matches!(error.problem, Problem::Duplicate) => Ok(false),
            added => Ok(added.map(|()| true)?),
        }
    }

    async fn add_idempotency_records(
        &self,
        records: Vec<IdempotencyRecord>,
    ) -> Result<(), StoreFailure> {
        let add = move |connection: &mut SqliteConnection| {
            let now = SystemTime::now();
            for record in &records {
                if idempotency::find(connection, &record.key, now)?.is_none() {
                    idempotency::add(connection, record)?;
                }
            }
            Ok(())
        };
        Ok(self.add(add).await?)
    }
}

#[async_trait]
impl StorageSnapshot for Snapshot {
    async fn last_id(&self) -> Result<Option<PetId>, StoreFailure> {
        let last = self.read(|connection| number(connection, LAST_ID)).await?;
        Ok(PetId::parse(last).ok())
    }

    async fn pets(
        &self,
        after: Option<PetId>,
        limit: usize,
    ) -> Result<Vec<StoredPet>, StoreFailure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(move |connection| read_pets(connection, after, limit))
            .await
    }

    async fn idempotency_records(
        &self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, StoreFailure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let opened = self.opened;
        self.read(move |connection| idempotency::list(connection, after.as_ref(), limit, opened))
            .await
    }
}

impl Snapshot {
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, StoreFailure> {
        // After a failure the transaction goes on: another connection would show another state.
        let read = self
            .session
            .run_on_connection(|_, connection| Ok(work(connection)))
            .await?;
        Ok(read.map_err(|error| Problem::from(error).at(self.session.file.path()))?)
    }
}

/// Whether the file is the target of a copy that has begun and not ended.
pub(crate) fn has_unfinished_copy(connection: &mut SqliteConnection) -> QueryResult<bool> {
    has_table(connection, "unfinished_copy")
}

/// A statement with many rows takes less than half of the time of one statement for each row.
fn add_pets(connection: &mut SqliteConnection, pets: &[StoredPet]) -> Result<(), Problem> {
    for pets in pets.chunks(ROWS_PER_STATEMENT) {
        let rows = pets.iter().map(|StoredPet { pet, created_at }| {
            (
                pets::id.eq(pet.id().get()),
                NewPetRow::from_pet(pet.new_pet(), created_at.micros()),
            )
        });
        let added = diesel::insert_into(pets::table)
            .values(rows.collect::<Vec<_>>())
            .execute(connection)?;
        if added != pets.len() {
            return Err(Problem::Suppressed);
        }
    }
    Ok(())
}

fn read_pets(
    connection: &mut SqliteConnection,
    after: Option<PetId>,
    limit: i64,
) -> QueryResult<Vec<StoredPet>> {
    // Includes rows with invalid ids, so that they are reported.
    let after = after.map_or(i64::MIN, PetId::get);
    let page = pets::table
        .filter(pets::id.gt(after))
        .order(pets::id)
        .limit(limit);
    let page = page.select((PetRow::as_select(), pets::created_at));
    page.load_iter::<(PetRow, i64), _>(connection)?
        .map(|row| parse(row?))
        .collect()
}

/// `created_at`: in microseconds since 1970.
fn parse((row, created_at): (PetRow, i64)) -> QueryResult<StoredPet> {
    let pet = Pet::try_from(row)?;
    let id = pet.id().get();
    let invalid = |problem| {
        corrupt(CorruptRow {
            column: "created_at",
            id,
            problem,
        })
    };
    let created_at = CreationTime::parse(created_at).map_err(|error| invalid(error.to_string()))?;
    Ok(StoredPet { pet, created_at })
}
