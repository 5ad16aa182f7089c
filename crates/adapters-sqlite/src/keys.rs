//! API keys in the file: their changes, their directory, and the record of their uses.
//!
//! **Problem.** Other processes change keys while this one serves requests, and SQLite notifies no process of a change.
//!
//! **Invariant.** A change is one transaction, which increases the version of all keys and records it in the row of the
//! key. So a directory reads one number to find that nothing has changed, and otherwise the changed keys only. The row
//! of a revoked key stays for them, without tokens; a key without valid tokens exists for no reader (`rows`). A use is
//! noted in memory, and written once a minute (`uses`).
//!
//! **Proof.** The contract suites `api_key_directory`, `api_key_store` and `api_key_uses`; in `tests/sqlite`:
//! `keys_changes.rs` and `keys_directory.rs`.

mod changes;
mod rows;
mod uses;

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{
    ApiKeySnapshot, ApiKeyUseRecord, KeyChanges, KeyCheck, KeyRows, KeySource, SelectKeys,
    StoredKey,
};
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyRefusal, AuditEntry, IssuedApiKey, NewToken,
    ports::{ApiKeyChangeError, ApiKeyStore, ChangedApiKey, RecordedUses, StoreFailure},
};
use async_trait::async_trait;
use diesel::prelude::*;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use crate::{
    SqliteFile,
    error::corrupt,
    session::Session,
    tables::{api_key_state, api_key_tokens, api_key_uses},
    values::milliseconds,
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
        let add = move |connection: &mut SqliteConnection| match rows::version(connection)? {
            0 => apply(connection, &change, &by).map(|changed| changed.map(|_| true)),
            _ => Ok(Ok(false)),
        };
        Ok(self
            .session()
            .change(add)
            .await
            .map_err(StoreFailure::from)??)
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
        let by = by.to_owned();
        let changed = self
            .session()
            .change(move |connection| apply(connection, &change, &by))
            .await;
        Ok(changed.map_err(StoreFailure::from)??)
    }

    async fn list(&self) -> Result<Vec<IssuedApiKey>, StoreFailure> {
        let list = |connection: &mut SqliteConnection| {
            let keys = rows::read(
                connection,
                SelectKeys::ChangedSince(i64::MIN),
                SystemTime::now(),
            )?;
            KeyRows::existing(&keys).map_err(corrupt)
        };
        Ok(self.session().read(list).await?)
    }

    async fn list_uses(&self) -> Result<RecordedUses, StoreFailure> {
        Ok(self
            .session()
            .read(|connection| uses::read(connection, SystemTime::now()))
            .await?)
    }

    async fn list_changes(&self) -> Result<Vec<AuditEntry>, StoreFailure> {
        Ok(self.session().read(changes::read).await?)
    }

    async fn add_changes(&self, entries: Vec<AuditEntry>) -> Result<(), StoreFailure> {
        let add = move |connection: &mut SqliteConnection| {
            changes::add(connection, entries, SystemTime::now())
        };
        Ok(self.session().change(add).await?)
    }

    async fn check_writable(&self) -> Result<(), StoreFailure> {
        Ok(self.session().change(|_| Ok(())).await?)
    }
}

/// Applies and records a change at the current time, in a transaction of the caller's. After a refusal, nothing was
/// changed.
fn apply(
    connection: &mut SqliteConnection,
    change: &ApiKeyChange,
    by: &str,
) -> QueryResult<Result<ChangedApiKey, ApiKeyRefusal>> {
    let (id, now) = (change.id(), SystemTime::now());
    let stored = rows::read(connection, SelectKeys::Id(id.as_str()), now)?.pop();
    let mut owners = Vec::new();
    for digest in change.digests() {
        owners.extend(rows::read(connection, SelectKeys::Digest(&digest.0), now)?);
    }
    let (before, after) = match KeyRows::apply(change, stored, &owners, now).map_err(corrupt)? {
        Ok(applied) => applied,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let version = rows::version(connection)? + 1;
    diesel::update(api_key_state::table)
        .set(api_key_state::version.eq(version))
        .execute(connection)?;
    // A token of the change may have been that of another key.
    diesel::delete(api_key_tokens::table.filter(api_key_tokens::expires_at.le(milliseconds(now))))
        .execute(connection)?;
    rows::write(connection, id, after.as_ref(), version)?;
    if before.is_none() || after.is_none() {
        diesel::delete(api_key_uses::table.filter(api_key_uses::api_key_id.eq(id.as_str())))
            .execute(connection)?;
    }
    let changed = ChangedApiKey {
        before,
        after,
        at: now,
    };
    changes::add(connection, AuditEntry::of(change, &changed, by), now)?;
    Ok(Ok(changed))
}

/// Reads the keys for a directory.
impl KeySource for Session {
    const INTERVAL: Duration = Duration::from_millis(50);
    const TRUST: Duration = Duration::from_millis(100);

    fn address(&self) -> String {
        self.file.path().display().to_string()
    }

    async fn check(&mut self, known: Option<i64>) -> Result<KeyCheck, String> {
        let changes = self
            .read(move |connection| read_changes(connection, known))
            .await;
        let changes = changes.map_err(|error| error.to_string())?;
        Ok(KeyCheck {
            now: SystemTime::now(),
            changes,
        })
    }
}

fn read_changes(
    connection: &mut SqliteConnection,
    known: Option<i64>,
) -> QueryResult<Option<KeyChanges>> {
    let version = rows::version(connection)?;
    if known == Some(version) {
        return Ok(None);
    }
    // A backup may have been restored into the file.
    let known = known.filter(|known| *known < version);
    let keys = rows::read(
        connection,
        SelectKeys::ChangedSince(known.unwrap_or(i64::MIN)),
        SystemTime::now(),
    )?;
    let keys = keys.into_iter().map(StoredKey::from).collect();
    Ok(Some(KeyChanges {
        version,
        keys,
        is_complete: known.is_none(),
    }))
}

#[cfg(test)]
mod tests {
    use animal_store_app::test_support::key_changes::add;
    use tempfile::TempDir;

    use super::*;
    use crate::FileUse;

    #[tokio::test]
    async fn a_directory_reads_what_has_changed_since_its_version_or_all_of_an_older_file() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        let file = SqliteFile::open(&path, FileUse::Create, Duration::from_secs(20)).unwrap();
        let store = SqliteApiKeyStore::new(file);
        for id in ["a", "b"] {
            store.change(add(id, id, None), "test").await.unwrap();
        }
        // A backup, which was restored into the file, may be older.
        for (known, expected) in [
            (None, Some((2, true))),
            (Some(1), Some((1, false))),
            (Some(2), None),
            (Some(3), Some((2, true))),
        ] {
            let changes = store
                .session()
                .read(move |connection| read_changes(connection, known))
                .await
                .unwrap();
            assert_eq!(
                changes.map(|changes| (changes.keys.len(), changes.is_complete)),
                expected,
                "{known:?}"
            );
        }
    }
}
