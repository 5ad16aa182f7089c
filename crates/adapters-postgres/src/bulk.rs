//! The content of a database in bulk, for a copy.
//!
//! **Problem.** A command reads or writes millions of rows beside a running service. It may be interrupted at any
//! moment, and its pets must not have the id of a pet that the service is about to create.
//!
//! **Invariant.** A snapshot is one transaction, read in pages of index scans. A batch is one transaction: all of it is
//! stored or nothing, or its outcome is reported as unknown. While pets are added, no create that could assign one of
//! their ids is in flight, and afterwards the sequence is beyond them. The sequence never moves backwards.
//!
//! **Proof.** The contract suite `bulk_storage`, and in `tests/postgres`: `bulk_ids.rs` (concurrent creates),
//! `bulk_faults.rs` (lost connections), `bulk_rows.rs` (invalid rows), `bulk_rights.rs` (a restricted user).

mod connection;
mod pets;
mod records;

use animal_store_app::{
    IdempotencyKey,
    ports::{BulkStorage, IdempotencyRecord, StorageSnapshot, StoreFailure, StoredPet},
};
use animal_store_domain::PetId;
use async_trait::async_trait;

use self::connection::BulkConnection;
use crate::{
    PgEndpoint, PostgresSettings,
    connection::application_name,
    permissions::{self, Needed},
};

/// The lock of [`pets::add`] needs UPDATE on the table.
const NEEDED: [Needed; 3] = [
    ("pets", "SELECT, INSERT, UPDATE"),
    ("idempotency_keys", "SELECT, INSERT, UPDATE"),
    ("pets_id_seq", "USAGE, UPDATE"),
];

/// The beginning of a transaction that sees what is committed now, and that no timeout of PostgreSQL ends between two
/// statements. The last statement takes the snapshot; `transaction_timeout` exists since PostgreSQL 17.
const SNAPSHOT: &str = "
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'";

/// The content of a database, in bulk. The schema has to be up to date. Each call and each snapshot has a connection of
/// its own.
pub struct PgBulkStorage {
    endpoint: PgEndpoint,
    settings: PostgresSettings,
}

/// A transaction that sees one state of the database.
struct PgSnapshot(BulkConnection);

impl PgBulkStorage {
    /// Creates the storage. Of the settings, it uses the timeouts and `transaction_pooling`.
    pub fn new(endpoint: PgEndpoint, settings: PostgresSettings) -> Self {
        let endpoint = endpoint.with_application_name(&application_name(settings.transaction_pooling));
        Self { endpoint, settings }
    }

    async fn connect(&self) -> Result<BulkConnection, StoreFailure> {
        BulkConnection::open(&self.endpoint, &self.settings).await
    }
}

#[async_trait]
impl BulkStorage for PgBulkStorage {
    async fn check_writable(&self) -> Result<(), StoreFailure> {
        let connection = self.connect().await?;
        let read_only = "SELECT WHERE current_setting('transaction_read_only') = 'on'";
        if !connection.query(read_only, &[]).await?.is_empty() {
            return Err(connection.refused("the server is a standby, or its transactions are read-only"));
        }
        let rows = connection.query(&permissions::query(&NEEDED), &[]).await?;
        match permissions::missing(&rows).map_err(|error| connection.unavailable(error))? {
            None => Ok(()),
            Some(missing) => Err(connection.refused(&missing)),
        }
    }

    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, StoreFailure> {
        let connection = self.connect().await?;
        connection.begin(SNAPSHOT).await?;
        Ok(Box::new(PgSnapshot(connection)))
    }

    async fn add_pets(&self, pets: Vec<StoredPet>) -> Result<bool, StoreFailure> {
        pets::add(&self.connect().await?, &pets).await
    }

    async fn add_idempotency_records(&self, records: Vec<IdempotencyRecord>) -> Result<(), StoreFailure> {
        records::add(&self.connect().await?, records).await
    }
}

#[async_trait]
impl StorageSnapshot for PgSnapshot {
    async fn pets(&self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, StoreFailure> {
        pets::page(&self.0, after, limit).await
    }

    async fn idempotency_records(
        &self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, StoreFailure> {
        records::page(&self.0, after, limit).await
    }
}
