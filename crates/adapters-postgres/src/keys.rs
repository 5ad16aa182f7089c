//! API keys in the database: their changes, their directory, and the record of their uses.
//!
//! **Problem.** Other processes change keys while this one serves requests. Of two changes, the one with the greater
//! number may commit first, and a reader that has seen that number would never read the other one. After a fail-over,
//! the new server may lack changes that the old one has shown.
//!
//! **Invariant.** A change is one transaction. It increases the version of all keys, whose row it locks until the
//! commit, and records it in the row of the key: a reader that sees a version sees every change up to it. The row of a
//! revoked key stays, without tokens; a key without valid tokens exists for no reader (`rows`). A directory compares the
//! version on a connection to the primary, and reads all keys again if another server answers (`directory`). A use is
//! noted in memory, and written once a minute (`uses`).
//!
//! **Proof.** The contract suites `api_key_directory`, `api_key_store` and `api_key_uses`; in `tests/postgres`:
//! `keys_changes.rs` and `keys_directory.rs`.

mod directory;
mod rows;
mod uses;

use std::time::SystemTime;

use animal_store_adapter_kit::{KeyRow, apply_key_change};
use animal_store_app::{
    ApiKeyChange, IssuedApiKey,
    ports::{ApiKeyChangeError, ApiKeyStore, ChangedApiKey, RecordedUses, StoreFailure},
};
use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio_postgres::types::Type;

pub(crate) use self::{directory::KeyReader, uses::UseWriter};
use crate::{
    PgEndpoint, PostgresSettings,
    bulk::{BulkConnection, SNAPSHOT},
};

/// What a change needs.
const NEEDED: &[(&str, &str)] = &[
    ("api_keys", "SELECT, INSERT, UPDATE"),
    ("api_key_tokens", "SELECT, INSERT, DELETE"),
    ("api_key_state", "SELECT, UPDATE"),
    ("api_key_uses", "SELECT, DELETE"),
];

/// Number of keys in a statement that reads many.
const PAGE_SIZE: usize = 5_000;

/// Changes and lists API keys in a database. The schema has to be up to date. Other processes may do so, and serve
/// requests, at the same time.
pub struct PgApiKeyStore {
    endpoint: PgEndpoint,
    settings: PostgresSettings,
    /// The connection of the last change, unless it failed. Changes take turns.
    connection: Mutex<Option<BulkConnection>>,
}

impl PgApiKeyStore {
    /// Creates the store. Of the settings, it uses the timeouts and `transaction_pooling`.
    pub fn new(endpoint: PgEndpoint, settings: PostgresSettings) -> Self {
        let endpoint = endpoint.named(settings.transaction_pooling).of_primary(settings.transaction_pooling);
        Self { endpoint, settings, connection: Mutex::default() }
    }

    async fn connect(&self) -> Result<BulkConnection, StoreFailure> {
        BulkConnection::open(self.endpoint.clone(), self.settings.clone()).await
    }
}

#[async_trait]
impl ApiKeyStore for PgApiKeyStore {
    async fn change(&self, change: ApiKeyChange) -> Result<ChangedApiKey, ApiKeyChangeError> {
        let mut kept = self.connection.lock().await;
        let connection = match kept.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        // After a failure or a refusal, the end of the connection ends the transaction.
        let changed = apply(&connection, &change).await?;
        connection.commit().await?;
        *kept = Some(connection);
        Ok(changed)
    }

    async fn list(&self) -> Result<Vec<IssuedApiKey>, StoreFailure> {
        let connection = self.connect().await?;
        connection.begin(SNAPSHOT).await?;
        let (select, mut keys) = (rows::select("id > $2 ORDER BY id LIMIT $3"), Vec::new());
        let (now, limit, mut after) = (None::<SystemTime>, i64::try_from(PAGE_SIZE).unwrap_or(i64::MAX), String::new());
        loop {
            let parameters = [(&now as _, Type::TIMESTAMPTZ), (&after as _, Type::TEXT), (&limit as _, Type::INT8)];
            let page = rows::decode(&connection.query(&select, &parameters).await?)?;
            let is_last = page.len() < PAGE_SIZE;
            if let Some(last) = page.last() {
                after.clone_from(&last.id);
            }
            for key in page.iter().filter(|key| key.exists()) {
                keys.push(key.issued().map_err(corrupt)?);
            }
            if is_last {
                return Ok(keys);
            }
        }
    }

    async fn list_uses(&self) -> Result<RecordedUses, StoreFailure> {
        uses::read(&self.connect().await?).await
    }

    async fn check_writable(&self) -> Result<(), StoreFailure> {
        self.connect().await?.check_writable(NEEDED).await
    }
}

/// Begins a transaction and applies a change in it, at the time at which no other change can precede its commit.
async fn apply(connection: &BulkConnection, change: &ApiKeyChange) -> Result<ChangedApiKey, ApiKeyChangeError> {
    connection.begin("").await?;
    let lock = "UPDATE api_key_state SET version = version + 1 RETURNING version, clock_timestamp()";
    let locked = connection.query(lock, &[]).await?;
    let state = locked.first().ok_or_else(|| corrupt("table api_key_state has no row".to_owned()))?;
    let (version, now): (i64, SystemTime) = (column(state.try_get(0))?, column(state.try_get(1))?);
    let found = find(connection, change, now).await?;
    let changed = apply_key_change(change, &found, now).map_err(corrupt)??;
    rows::write(connection, change.id(), &changed, version).await?;
    Ok(changed)
}

/// Reads the key with the id of a change, and the keys that have its tokens.
async fn find(
    connection: &BulkConnection,
    change: &ApiKeyChange,
    now: SystemTime,
) -> Result<Vec<KeyRow>, StoreFailure> {
    let owners = "SELECT api_key_id FROM api_key_tokens WHERE digest = ANY ($3)";
    let select = rows::select(&format!("id = ANY (ARRAY ({owners}) || $2)"));
    let (id, digests) = (change.id().as_str(), change.digests());
    let digests: Vec<&[u8]> = digests.iter().map(|digest| &digest.0[..]).collect();
    let parameters = [(&now as _, Type::TIMESTAMPTZ), (&id as _, Type::TEXT), (&digests as _, Type::BYTEA_ARRAY)];
    rows::decode(&connection.query(&select, &parameters).await?)
}

fn corrupt(reason: String) -> StoreFailure {
    StoreFailure::Corrupt(reason.into())
}

/// A column that cannot be decoded has another type than this program expects.
fn column<T>(decoded: Result<T, tokio_postgres::Error>) -> Result<T, StoreFailure> {
    decoded.map_err(|error| StoreFailure::Corrupt(error.into()))
}
