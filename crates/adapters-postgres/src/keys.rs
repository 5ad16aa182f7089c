//! API keys in the database: their changes, their directory, and the record of their uses.
//!
//! **Problem.** Every instance looks keys up for each request, and a command or another instance changes them.
//!
//! **Invariant.** A change is one transaction, which locks the row of the version and increases it, so that versions
//! become visible in their order: a directory that has read a version has seen all changes up to it. The row of a
//! revoked key stays for directories, without tokens; a key without valid tokens exists for no reader. A revocation waits
//! for no lock that the user of the instances can take: its record, and the end of its uses, come after its commit.
//!
//! **Proof.** The contract suites `api_key_directory`, `api_key_store` and `api_key_uses`; `tests/postgres/keys.rs`.

mod audit;
mod directory;
mod rows;

use std::{sync::Arc, time::SystemTime};

use animal_store_adapter_kit::{
    ApiKeySnapshot, ApiKeyUseRecord, KeyRows, PendingUses, SelectKeys, UseStore,
    log_unrecorded_revocation, recorded_uses,
};
use animal_store_app::{
    ApiKeyChange, ApiKeyId, AuditEntry, IssuedApiKey,
    ports::{ApiKeyChangeError, ApiKeyStore, ChangedApiKey, RecordedUses, StoreFailure},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::{sync::Mutex, task::JoinHandle};
use tokio_postgres::types::Type;

use self::directory::Source;
use crate::{
    PgEndpoint, PostgresSettings,
    checks::missing_permissions,
    transaction::{Database, TransactionConnection, corrupt, parse},
};

/// Maximum number of uses that a transaction writes.
const USES_PER_TRANSACTION: usize = 1000;

/// What a change needs.
const NEEDED: [(&str, &str); 7] = [
    ("api_keys", "SELECT, INSERT, UPDATE"),
    ("api_key_tokens", "SELECT, INSERT, DELETE"),
    ("api_key_state", "SELECT, UPDATE"),
    ("api_key_marks", "SELECT, INSERT, UPDATE, DELETE"),
    ("api_key_readings", "SELECT, INSERT, DELETE"),
    ("api_key_uses", "SELECT, DELETE"),
    ("api_key_changes", "SELECT, INSERT, DELETE"),
];

/// Index scans for a few keys, whatever the number of keys.
const FEW_KEYS: &str = "SET LOCAL enable_nestloop = on; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

/// Begins a transaction that waits for no use of an API key.
const BRIEFLY: &str = "SET LOCAL lock_timeout = 100";

/// Changes and lists API keys in a database. Its instances serve requests at the same time.
#[derive(Clone)]
pub struct PgApiKeyStore {
    database: Database,
    /// The connection of the last change, unless it failed or was refused: a copy makes many. Changes take turns.
    connection: Arc<Mutex<Option<TransactionConnection>>>,
}

impl PgApiKeyStore {
    /// Creates the store. Of the settings, it uses the timeouts and `transaction_pooling`. The schema has to be up to
    /// date.
    pub fn new(endpoint: PgEndpoint, settings: PostgresSettings) -> Self {
        Self {
            database: Database::new(endpoint, settings),
            connection: Arc::default(),
        }
    }

    /// Starts a directory of the keys, with a connection of its own: see [`ApiKeySnapshot::new`]. Its task ends after
    /// the directory is dropped.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_directory(&self, registry: &mut Registry) -> ApiKeySnapshot {
        let source = Source::new(self.database.clone());
        let timeout = self.database.settings.timeout;
        let (directory, task) = ApiKeySnapshot::new(source, timeout, registry);
        tokio::spawn(task);
        directory
    }

    /// Starts a record of uses: see [`ApiKeyUseRecord::start`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_uses(&self, registry: &mut Registry) -> (ApiKeyUseRecord, JoinHandle<()>) {
        ApiKeyUseRecord::start(
            self.clone(),
            ApiKeyUseRecord::MAX_KEYS,
            ApiKeyUseRecord::INTERVAL,
            registry,
        )
    }

    async fn begin(&self) -> Result<TransactionConnection, StoreFailure> {
        let connection = self.database.connect().await?;
        connection.begin("").await?;
        Ok(connection)
    }
}

#[async_trait]
impl ApiKeyStore for PgApiKeyStore {
    async fn change(
        &self,
        change: ApiKeyChange,
        by: &str,
    ) -> Result<ChangedApiKey, ApiKeyChangeError> {
        let mut kept = self.connection.lock().await;
        // The end of a connection ends its transaction.
        let connection = match kept.take() {
            Some(connection) => connection,
            None => self.database.connect().await?,
        };
        connection.begin(FEW_KEYS).await?;
        let (version, now) = rows::lock(&connection).await?;
        let stored = rows::read(&connection, SelectKeys::Id(change.id().as_str()))
            .await?
            .pop();
        let mut owners = Vec::new();
        for digest in change.digests() {
            owners.extend(rows::read(&connection, SelectKeys::Digest(&digest.0)).await?);
        }
        let key = KeyRows::apply(&change, stored.as_ref(), &owners, now).map_err(corrupt)??;
        rows::write(&connection, change.id(), &key, version + 1).await?;
        let changed = key.changed;
        let entry = AuditEntry::of(&change, &changed, by);
        if let ApiKeyChange::Revoke(id) = &change {
            connection.commit().await?;
            *kept = after_revocation(connection, id, entry, by, now).await;
            return Ok(changed);
        }
        if changed.before.is_none() {
            delete_uses(&connection, change.id()).await?;
        }
        audit::add(&connection, entry, now).await?;
        connection.commit().await?;
        *kept = Some(connection);
        Ok(changed)
    }

    async fn list(&self) -> Result<Vec<IssuedApiKey>, StoreFailure> {
        let connection = self.begin().await?;
        let now = rows::now(&connection).await?;
        let keys = rows::read(&connection, SelectKeys::ChangedSince(i64::MIN)).await?;
        KeyRows::existing(&keys, now).map_err(corrupt)
    }

    async fn list_uses(&self) -> Result<RecordedUses, StoreFailure> {
        let connection = self.begin().await?;
        let since = "SELECT min(since) FROM (SELECT since FROM api_key_uses_since
            UNION ALL SELECT uses_since FROM api_key_state) AS beginnings";
        let since = parse(&connection.query_one(since, &[]).await?, 0)?;
        let valid = "SELECT api_key_id, kind, last_used_at FROM api_key_uses JOIN api_keys ON id = api_key_id
            WHERE EXISTS (SELECT FROM api_key_tokens AS token WHERE token.api_key_id = id
                AND (expires_at IS NULL OR expires_at > floor(extract(epoch FROM now()) * 1000)))";
        let rows = connection.query(valid, &[]).await?;
        let rows = rows
            .iter()
            .map(|row| Ok((parse(row, 0)?, parse(row, 1)?, parse(row, 2)?)));
        Ok(recorded_uses(
            since,
            rows.collect::<Result<Vec<_>, StoreFailure>>()?,
        ))
    }

    async fn audit_log(&self) -> Result<Vec<AuditEntry>, StoreFailure> {
        let connection = self.begin().await?;
        let now = rows::now(&connection).await?;
        audit::read(&connection, now).await
    }

    async fn append_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreFailure> {
        let connection = self.begin().await?;
        let now = rows::now(&connection).await?;
        audit::add(&connection, entries, now).await?;
        connection.commit().await
    }

    async fn check_writable(&self) -> Result<(), StoreFailure> {
        let connection = self.begin().await?;
        connection
            .check(
                &missing_permissions(&NEEDED),
                "the user lacks permissions: ",
            )
            .await
    }
}

/// Records a revocation that is committed, and deletes the uses of the key, or leaves them. Returns the connection if it
/// can be used again.
async fn after_revocation(
    connection: TransactionConnection,
    id: &ApiKeyId,
    entry: Option<AuditEntry>,
    by: &str,
    now: SystemTime,
) -> Option<TransactionConnection> {
    let record = async {
        connection.begin("").await?;
        audit::add(&connection, entry, now).await?;
        connection.commit().await
    };
    if let Err(failure) = record.await {
        log_unrecorded_revocation(id, by, &failure.reason());
        return None;
    }
    let forget = async {
        connection.begin(BRIEFLY).await?;
        delete_uses(&connection, id).await?;
        connection.commit().await
    };
    forget.await.ok().map(|()| connection)
}

async fn delete_uses(
    connection: &TransactionConnection,
    id: &ApiKeyId,
) -> Result<(), StoreFailure> {
    let delete = "DELETE FROM api_key_uses WHERE api_key_id = $1";
    let id = id.as_str();
    let deleted = connection.query(delete, &[(&id, Type::TEXT)]).await;
    deleted.map(drop)
}

impl UseStore for PgApiKeyStore {
    fn address(&self) -> String {
        self.database.endpoint.to_string()
    }

    async fn write(&self, uses: &PendingUses, now: i64) -> Result<(), String> {
        self.write_uses(uses, now)
            .await
            .map_err(|failure| failure.reason())
    }
}

impl PgApiKeyStore {
    /// Records uses of the keys that exist, a part of them in each transaction. No time moves backwards, and the
    /// beginning of the record does not change. All instances lock the rows in the same order.
    async fn write_uses(&self, uses: &PendingUses, now: i64) -> Result<(), StoreFailure> {
        let connection = self.database.connect().await?;
        let beginning =
            "INSERT INTO api_key_uses_since (id, since) VALUES (1, $1) ON CONFLICT DO NOTHING";
        let insertion = "INSERT INTO api_key_uses (api_key_id, kind, last_used_at)
            SELECT id, $1, last_used_at FROM unnest($2, $3) AS given (id, last_used_at)
            WHERE EXISTS (SELECT FROM api_key_tokens WHERE api_key_id = id) ORDER BY id COLLATE \"C\"
            ON CONFLICT (api_key_id, kind) DO UPDATE SET last_used_at = excluded.last_used_at
                WHERE api_key_uses.last_used_at < excluded.last_used_at";
        for (kind, times) in uses.iter() {
            let times: Vec<_> = times.iter().collect();
            for part in times.chunks(USES_PER_TRANSACTION) {
                let ids: Vec<_> = part.iter().map(|(id, _)| id.as_str()).collect();
                let times: Vec<i64> = part.iter().map(|(_, time)| **time).collect();
                let kind = kind as i16;
                connection.begin(FEW_KEYS).await?;
                connection.query(beginning, &[(&now, Type::INT8)]).await?;
                let values = [
                    (&kind as _, Type::INT2),
                    (&ids as _, Type::TEXT_ARRAY),
                    (&times as _, Type::INT8_ARRAY),
                ];
                connection.query(insertion, &values).await?;
                connection.commit().await?;
            }
        }
        Ok(())
    }
}
