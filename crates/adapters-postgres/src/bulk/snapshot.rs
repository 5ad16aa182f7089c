use animal_store_adapter_kit::idempotency_record;
use animal_store_app::{
    IdempotencyKey, from_milliseconds, milliseconds,
    ports::{IdempotencyRecord, StorageSnapshot, StoreFailure, StoreResult, StoredPet},
};
use animal_store_domain::PetId;
use async_trait::async_trait;
use tokio_postgres::{Row, types::Type};

use crate::pet_row::{PET, RECORD_COLUMNS, column_names, stored_pet};
use crate::transaction::{TransactionConnection, parse};

/// The beginning of a transaction that sees what is committed now, and that no timeout of PostgreSQL ends between two
/// statements. The last statement takes the snapshot; `transaction_timeout` exists since PostgreSQL 17.
pub(super) const SNAPSHOT: &str = "
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'";

/// USAGE on the sequence suffices for this. If it is behind, after a restore, the pets decide.
const LAST_ID: &str = "SELECT greatest(max(id), pg_sequence_last_value('pets_id_seq')) FROM pets";

/// A transaction that sees one state of the database.
pub(super) struct PgSnapshot(pub(super) TransactionConnection);

#[async_trait]
impl StorageSnapshot for PgSnapshot {
    /// Returns the position of the sequence now: it is no part of the transaction.
    async fn last_id(&self) -> StoreResult<Option<PetId>> {
        let row = self.0.query_one(LAST_ID, &[]).await?;
        let last: Option<i64> = parse(&row, 0)?;
        Ok(last.and_then(|last| PetId::parse(last).ok()))
    }

    async fn pets(&self, after: Option<PetId>, limit: usize) -> StoreResult<Vec<StoredPet>> {
        let select =
            format!("SELECT {PET}, created_at FROM pets WHERE id > $1 ORDER BY id LIMIT $2");
        // Rows with invalid ids are included, so that they are reported.
        let after = after.map_or(i64::MIN, PetId::get);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self
            .0
            .query(&select, &[(&after, Type::INT8), (&limit, Type::INT8)])
            .await?;
        rows.iter().map(stored_pet).collect()
    }

    /// Returns records that had not expired when the snapshot began.
    async fn idempotency_records(
        &self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> StoreResult<Vec<IdempotencyRecord>> {
        let select = format!(
            "SELECT {} FROM idempotency_keys WHERE (api_key_id, key_digest) > ($1, $2) AND expires_at > now()
            ORDER BY api_key_id, key_digest LIMIT $3",
            column_names(RECORD_COLUMNS)
        );
        let mut api_key = "";
        let mut digest: &[u8] = &[];
        if let Some(key) = &after {
            api_key = key.api_key.as_str();
            digest = &key.digest;
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let parameters = [
            (&api_key as _, Type::TEXT),
            (&digest as _, Type::BYTEA),
            (&limit as _, Type::INT8),
        ];
        let rows = self.0.query(&select, &parameters).await?;
        rows.iter().map(record).collect()
    }
}

fn record(row: &Row) -> StoreResult<IdempotencyRecord> {
    let expires_at = from_milliseconds(milliseconds(parse(row, 4)?));
    idempotency_record(
        parse(row, 0)?,
        parse(row, 1)?,
        parse(row, 2)?,
        parse(row, 3)?,
        expires_at,
    )
    .map_err(|reason| StoreFailure::Corrupt(reason.into()))
}
