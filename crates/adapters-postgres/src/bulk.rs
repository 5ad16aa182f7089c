//! The content of a database in bulk, for a copy.
//!
//! **Problem.** A command reads or writes millions of rows beside a running service. It may be interrupted at any
//! moment, and its pets must not have the id of a pet that the service is about to create.
//!
//! **Invariant.** A snapshot is one transaction, read in pages of index scans. A batch is one transaction: all of it is
//! stored or nothing, or its outcome is reported as unknown. While pets are added, no create that could assign one of
//! their ids is in flight, and afterwards the sequence is beyond them. The sequence never moves backwards.
//!
//! **Proof.** The contract suite `bulk_storage`, and in `tests/postgres`: `bulk.rs` (concurrent creates, invalid rows),
//! `bulk_faults.rs` (frozen connections, a restricted user).

mod snapshot;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_app::ports::{
    BulkStorage, Cause, IdempotencyRecord, StorageSnapshot, StoreFailure, StoreResult, StoredPet,
};
use animal_store_domain::PetId;
use async_trait::async_trait;
use tokio_postgres::{error::SqlState, types::Type};

use self::snapshot::{PgSnapshot, SNAPSHOT};
use crate::{
    Migrations, PgEndpoint, PostgresSettings,
    checks::{CANNOT_CREATE, advance_sequence, missing_permissions},
    pet_row::{COLUMNS, RECORD_COLUMNS, array, arrays, column_names, unnest},
    transaction::Database,
};

/// The lock of [`PgBulkStorage::add_pets`] needs UPDATE on the table.
const NEEDED: [(&str, &str); 3] = [
    ("pets", "SELECT, INSERT, UPDATE"),
    ("idempotency_keys", "SELECT, INSERT, UPDATE"),
    ("pets_id_seq", "USAGE, UPDATE"),
];

/// The columns of a stored pet that an INSERT gives beside [`COLUMNS`].
const STORED_COLUMNS: &[(&str, Type)] = &[
    ("created_at", Type::TIMESTAMPTZ_ARRAY),
    ("id", Type::INT8_ARRAY),
];

/// The content of a database, in bulk. The schema has to be up to date. Each call and each snapshot has a connection of
/// its own.
pub struct PgBulkStorage {
    database: Database,
    migrations: Migrations,
}

impl PgBulkStorage {
    /// Creates the storage. `migrations` are those of the database. Of the settings, it uses the timeouts and
    /// `transaction_pooling`.
    pub fn new(endpoint: PgEndpoint, migrations: Migrations, settings: PostgresSettings) -> Self {
        Self {
            database: Database::new(endpoint, settings),
            migrations,
        }
    }
}

#[async_trait]
impl BulkStorage for PgBulkStorage {
    async fn newer_migrations(&self) -> StoreResult<Vec<String>> {
        let comparison = self.migrations.comparison().await;
        let comparison =
            comparison.map_err(|error| StoreFailure::Unavailable(Cause::of(&error)))?;
        Ok(comparison.newer)
    }

    async fn check_writable(&self) -> StoreResult<()> {
        let connection = self.database.connect().await?;
        let missing = missing_permissions(&NEEDED);
        let missing = format!("({missing}) UNION ALL {CANNOT_CREATE}");
        let description = "the user lacks permissions: ";
        connection.check(&missing, description).await
    }

    async fn mark_copy(&self, is_unfinished: bool) -> StoreResult<()> {
        let statement = if is_unfinished {
            "CREATE TABLE IF NOT EXISTS unfinished_copy ()"
        } else {
            "DROP TABLE IF EXISTS unfinished_copy"
        };
        let connection = self.database.connect().await?;
        connection.begin(statement).await?;
        connection.commit().await
    }

    async fn snapshot(&self) -> StoreResult<Box<dyn StorageSnapshot>> {
        let connection = self.database.connect().await?;
        connection.begin(SNAPSHOT).await?;
        Ok(Box::new(PgSnapshot(connection)))
    }

    async fn skip_ids(&self, last: PetId) -> StoreResult<()> {
        let skip = advance_sequence("pets", &last.get().to_string());
        let connection = self.database.connect().await?;
        connection.begin(&skip).await?;
        connection.commit().await
    }

    async fn add_pets(&self, pets: Vec<StoredPet>) -> StoreResult<bool> {
        let ids: Vec<_> = pets.iter().map(|stored| stored.pet.id().get()).collect();
        let Some(greatest) = ids.iter().max() else {
            return Ok(true);
        };
        let reserve_ids = advance_sequence("pets", &greatest.to_string());
        let new_pets: Vec<_> = pets.iter().map(|stored| stored.pet.new_pet()).collect();
        let mut arrays = arrays(&new_pets);
        arrays.push(array(pets.iter().map(created_at)));
        arrays.push(Box::new(ids));
        let columns = [COLUMNS, STORED_COLUMNS].concat();
        let names = column_names(&columns);
        let given = unnest(&columns);
        let insert = format!("INSERT INTO pets ({names}) SELECT {names} FROM {given}");
        let connection = self.database.connect().await?;
        connection.begin(&reserve_ids).await?;
        let written = match connection.write(&insert, &columns, &arrays).await {
            Err(error) if error.refusal() == Some(&SqlState::UNIQUE_VIOLATION) => return Ok(false),
            written => written?,
        };
        if written < pets.len() as u64 {
            return Err(connection.refused("a trigger suppressed a row of table pets"));
        }
        connection.commit().await?;
        Ok(true)
    }

    /// Like creates, it locks records in the order of their keys and replaces expired ones.
    async fn add_idempotency_records(
        &self,
        mut records: Vec<IdempotencyRecord>,
    ) -> StoreResult<()> {
        records.sort_by(|one, other| one.key.cmp(&other.key));
        records.dedup_by(|one, other| one.key == other.key);
        let columns = column_names(RECORD_COLUMNS);
        let given = unnest(RECORD_COLUMNS);
        let insert = format!(
            "INSERT INTO idempotency_keys AS found ({columns}) SELECT {columns} FROM {given} ORDER BY ordinal
            ON CONFLICT (api_key_id, key_digest) DO UPDATE SET
                pet_digest = excluded.pet_digest, pet_id = excluded.pet_id, expires_at = excluded.expires_at
            WHERE found.expires_at <= now()"
        );
        let records = || records.iter();
        let arrays = [
            array(records().map(|record| record.key.api_key.as_str())),
            array(records().map(|record| record.key.digest.as_slice())),
            array(records().map(|record| record.pet_digest.0.as_slice())),
            array(records().map(|record| record.pet_id.get())),
            array(records().map(|record| record.expires_at)),
        ];
        let connection = self.database.connect().await?;
        connection.begin("").await?;
        connection.write(&insert, RECORD_COLUMNS, &arrays).await?;
        connection.commit().await
    }
}

fn created_at(stored: &StoredPet) -> SystemTime {
    let micros = stored.created_at.micros().unsigned_abs();
    UNIX_EPOCH + Duration::from_micros(micros)
}
