//! API keys in the file: their changes, their directory, and the record of their uses.
//!
//! **Problem.** Other processes change keys while this one serves requests, and SQLite notifies no process of a change.
//!
//! **Invariant.** A change is one transaction, which increases the version of all keys and records it in the row of the
//! key. So a directory reads one row to find that nothing has changed, and otherwise the changed keys only (`state`).
//! The row of a revoked key stays for them, without tokens; a key without valid tokens exists for no reader (`rows`). A
//! revocation is recorded after its commit. A use is noted in memory, and written once a minute (`uses`).
//!
//! **Proof.** The contract suites `api_key_directory`, `api_key_store` and `api_key_uses`; in `tests/sqlite`:
//! `keys_changes.rs` and `keys_directory.rs`.

mod audit;
mod rows;
mod state;
mod uses;

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{
    ApiKeySnapshot, ApiKeyUseRecord, KeyCheck, KeyRows, KeySource, KeyState, SelectKeys,
    log_unrecorded_revocation,
};
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyRefusal, AuditEntry, IssuedApiKey, NewToken,
    ports::{ApiKeyChangeError, ApiKeyStore, ChangedApiKey, RecordedUses, StoreFailure},
};
use async_trait::async_trait;
use diesel::{connection::SimpleConnection, prelude::*};
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use crate::{
    SqliteFile, backup::time_of_backup, error::corrupt, session::Session, tables::api_key_uses,
};

/// Changes and lists API keys in a file. Other processes may do so, and serve requests, at the same time.
#[derive(Debug, Clone)]
pub struct SqliteApiKeyStore(SqliteFile);

impl SqliteApiKeyStore {
    /// Creates the store.
    pub const fn new(file: SqliteFile) -> Self {
        Self(file)
    }

    /// Starts a directory of the keys: see [`ApiKeySnapshot::new`]. The handle resolves after it is dropped, and its
    /// connection is closed.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_directory(&self, registry: &mut Registry) -> (ApiKeySnapshot, JoinHandle<()>) {
        let (directory, task) = ApiKeySnapshot::new(self.session(), self.0.timeout(), registry);
        (directory, tokio::spawn(task))
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

    /// Adds a key with its first token if no API key was ever changed in the file. Returns whether it was added. Of
    /// several starts at one moment, one adds its key.
    ///
    /// # Errors
    /// See [`ApiKeyChangeError`].
    pub async fn add_first(
        &self,
        key: ApiKey,
        token: NewToken,
        by: &str,
    ) -> Result<bool, ApiKeyChangeError> {
        let (change, by) = (ApiKeyChange::Add(key, token), by.to_owned());
        let add = move |connection: &mut SqliteConnection| match state::read(connection)?.version {
            0 => apply(connection, &change, &by).map(|changed| changed.map(|_| true)),
            _ => Ok(Ok(false)),
        };
        Ok(self
            .session()
            .change(add)
            .await
            .map_err(StoreFailure::from)??)
    }

    /// Warns if the file is a backup that no service has used, and removes its mark if the file can be written.
    ///
    /// # Errors
    /// See [`StoreFailure`].
    pub async fn warn_of_backup(&self) -> Result<(), StoreFailure> {
        let Some(time) = self.session().read(time_of_backup).await? else {
            return Ok(());
        };
        let records = self.list().await?.len();
        tracing::warn!(
            time,
            records,
            "this store is a backup: API keys that were revoked since then are valid again, revoke them once more"
        );
        if self.0.is_writable() {
            let remove = |connection: &mut SqliteConnection| {
                connection.batch_execute("DROP TABLE backup_times")
            };
            self.session().change(remove).await?;
        }
        Ok(())
    }

    fn session(&self) -> Session {
        Session::new(&self.0)
    }
}

#[async_trait]
impl ApiKeyStore for SqliteApiKeyStore {
    async fn change(
        &self,
        change: ApiKeyChange,
        by: &str,
    ) -> Result<ChangedApiKey, ApiKeyChangeError> {
        let session = self.session();
        let applied = {
            let change = change.clone();
            let by = by.to_owned();
            session.change(move |connection| apply(connection, &change, &by))
        };
        let changed = applied.await.map_err(StoreFailure::from)??;
        if let ApiKeyChange::Revoke(id) = &change {
            let entry = AuditEntry::of(&change, &changed, by);
            let at = changed.at;
            let record = move |connection: &mut SqliteConnection| audit::add(connection, entry, at);
            if let Err(error) = session.change(record).await {
                log_unrecorded_revocation(id, by, &error.to_string());
            }
        }
        Ok(changed)
    }

    async fn list(&self) -> Result<Vec<IssuedApiKey>, StoreFailure> {
        let list = |connection: &mut SqliteConnection| {
            let keys = rows::read(connection, SelectKeys::ChangedSince(i64::MIN))?;
            KeyRows::existing(&keys, SystemTime::now()).map_err(corrupt)
        };
        Ok(self.session().read(list).await?)
    }

    async fn list_uses(&self) -> Result<RecordedUses, StoreFailure> {
        Ok(self
            .session()
            .read(|connection| uses::read(connection, SystemTime::now()))
            .await?)
    }

    async fn audit_log(&self) -> Result<Vec<AuditEntry>, StoreFailure> {
        Ok(self
            .session()
            .read(|connection| audit::read(connection, SystemTime::now()))
            .await?)
    }

    async fn append_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreFailure> {
        let add = move |connection: &mut SqliteConnection| {
            audit::add(connection, entries, SystemTime::now())
        };
        Ok(self.session().change(add).await?)
    }

    async fn check_writable(&self) -> Result<(), StoreFailure> {
        Ok(self.session().change(|_| Ok(())).await?)
    }
}

/// Applies a change at the current time, in a transaction of the caller's, and records it, unless it is a revocation.
/// After a refusal, nothing was changed.
fn apply(
    connection: &mut SqliteConnection,
    change: &ApiKeyChange,
    by: &str,
) -> QueryResult<Result<ChangedApiKey, ApiKeyRefusal>> {
    let id = change.id();
    let now = SystemTime::now();
    let stored = rows::read(connection, SelectKeys::Id(id.as_str()))?.pop();
    let mut owners = Vec::new();
    for digest in change.digests() {
        owners.extend(rows::read(connection, SelectKeys::Digest(&digest.0))?);
    }
    let key = match KeyRows::apply(change, stored.as_ref(), &owners, now).map_err(corrupt)? {
        Ok(key) => key,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let version = state::read(connection)?.version + 1;
    rows::write(connection, id, &key, version)?;
    let changed = key.changed;
    if changed.before.is_none() || changed.after.is_none() {
        diesel::delete(api_key_uses::table.filter(api_key_uses::api_key_id.eq(id.as_str())))
            .execute(connection)?;
    }
    if !matches!(change, ApiKeyChange::Revoke(_)) {
        audit::add(connection, AuditEntry::of(change, &changed, by), now)?;
    }
    Ok(Ok(changed))
}

/// Reads the keys for a directory.
impl KeySource for Session {
    const INTERVAL: Duration = Duration::from_millis(50);
    const TRUST: Duration = Duration::from_millis(100);

    fn address(&self) -> String {
        self.file.path().display().to_string()
    }

    async fn check(&mut self, known: Option<&KeyState>) -> Result<KeyCheck, String> {
        let known = known.cloned();
        let delta = self
            .read(move |connection| state::read_delta(connection, known.as_ref()))
            .await;
        let delta = delta.map_err(|error| error.to_string())?;
        Ok(KeyCheck {
            now: SystemTime::now(),
            delta,
        })
    }
}
