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
//! `keys_revocations.rs`, `keys_changes.rs`, `keys_corrupt.rs` and `keys_uses.rs`.

mod rows;
mod uses;

use std::time::{Duration, SystemTime};

use animal_store_adapter_kit::{ApiKeySnapshot, ApiKeyUseRecord, KeyChanges, KeySource, StoredKey};
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyRefusal, IssuedApiKey, NewToken,
    ports::{ApiKeyChangeError, ApiKeyStore, ChangedApiKey, RecordedUses, StoreFailure},
};
use async_trait::async_trait;
use diesel::prelude::*;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

use self::rows::Select;
use crate::{
    SqliteFile,
    access::{Session, corrupt},
    tables::{api_key_state, api_key_tokens},
    values::milliseconds,
};

/// Time between two writes of uses.
const USES_INTERVAL: Duration = Duration::from_mins(1);
/// Maximum number of keys of each kind in a record of uses. It bounds the memory if writes fail.
const MAX_USED_KEYS: usize = 100_000;

/// Changes and lists API keys in a file. Other processes may do so, and serve requests, at the same time.
#[derive(Debug, Clone)]
pub struct SqliteApiKeyStore {
    file: SqliteFile,
}

impl SqliteApiKeyStore {
    /// Creates the store.
    pub const fn new(file: SqliteFile) -> Self {
        Self { file }
    }

    /// Starts a directory of the keys: see [`ApiKeySnapshot::new`]. The handle resolves after it is dropped, and its
    /// connection is closed.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_directory(&self, registry: &mut Registry) -> (ApiKeySnapshot, JoinHandle<()>) {
        let (directory, task) = ApiKeySnapshot::new(Session::new(&self.file), self.file.timeout(), registry);
        (directory, tokio::spawn(task))
    }

    /// Starts a record of uses: see [`ApiKeyUseRecord::start`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_uses(&self, registry: &mut Registry) -> (ApiKeyUseRecord, JoinHandle<()>) {
        ApiKeyUseRecord::start(self.clone(), MAX_USED_KEYS, USES_INTERVAL, registry)
    }

    /// Adds a key with its first token if the file is new: no command or start has changed an API key in it. Returns
    /// whether it was added. Of several starts at one moment, one adds its key.
    ///
    /// # Errors
    /// See [`ApiKeyChangeError`].
    pub async fn add_first(&self, key: ApiKey, token: NewToken) -> Result<bool, ApiKeyChangeError> {
        let change = ApiKeyChange::Add(key, token);
        let added = self.apply(move |connection| match rows::version(connection)? {
            0 => apply(connection, &change).map(|changed| changed.map(|_| true)),
            _ => Ok(Ok(false)),
        });
        Ok(added.await??)
    }

    async fn apply<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, StoreFailure> {
        let changed = Session::new(&self.file).change(work).await;
        changed.map_err(|error| error.failure(self.file.path()))
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteConnection, SystemTime) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, StoreFailure> {
        let read = Session::new(&self.file).read(|connection| work(connection, SystemTime::now())).await;
        read.map_err(|error| error.failure(self.file.path()))
    }
}

#[async_trait]
impl ApiKeyStore for SqliteApiKeyStore {
    async fn change(&self, change: ApiKeyChange) -> Result<ChangedApiKey, ApiKeyChangeError> {
        Ok(self.apply(move |connection| apply(connection, &change)).await??)
    }

    async fn list(&self) -> Result<Vec<IssuedApiKey>, StoreFailure> {
        self.read(|connection, now| {
            let keys = rows::read(connection, Select::ChangedSince(i64::MIN), now)?;
            keys.iter().filter(|key| key.exists()).map(rows::KeyRows::issued).collect()
        })
        .await
    }

    async fn list_uses(&self) -> Result<RecordedUses, StoreFailure> {
        self.read(uses::read).await
    }

    async fn check_writable(&self) -> Result<(), StoreFailure> {
        self.apply(|_| Ok(())).await
    }
}

/// Applies a change at the current time, in a transaction of the caller's. After a refusal, nothing was changed.
fn apply(
    connection: &mut SqliteConnection,
    change: &ApiKeyChange,
) -> QueryResult<Result<ChangedApiKey, ApiKeyRefusal>> {
    let (id, now) = (change.id(), SystemTime::now());
    let stored = rows::read(connection, Select::Id(id.as_str()), now)?.pop().filter(rows::KeyRows::exists);
    let before = match (stored, change) {
        (None, _) => None,
        // So that an invalid key can be revoked.
        (Some(key), ApiKeyChange::Revoke(_)) => {
            Some(key.issued().unwrap_or_else(|_| IssuedApiKey::unreadable(id.clone())))
        }
        (Some(key), _) => Some(key.issued()?),
    };
    let mut owner = None;
    for digest in change.digests() {
        let owners = rows::read(connection, Select::Digest(digest.as_bytes()), now)?;
        if let Some(other) = owners.iter().find(|key| key.exists() && !key.has_id(id)) {
            owner = Some(other.key().map_err(corrupt)?);
        }
    }
    let after = match change.apply(before.as_ref(), owner.as_ref(), now) {
        Ok(after) => after,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let version = rows::version(connection)? + 1;
    diesel::update(api_key_state::table).set(api_key_state::version.eq(version)).execute(connection)?;
    // A token of the change may have been that of another key.
    diesel::delete(api_key_tokens::table.filter(api_key_tokens::expires_at.le(milliseconds(now))))
        .execute(connection)?;
    rows::write(connection, id, after.as_ref(), version)?;
    if before.is_none() || after.is_none() {
        uses::delete(connection, id)?;
    }
    Ok(Ok(ChangedApiKey { before, after, at: now }))
}

/// Reads the keys for a directory.
impl KeySource for Session {
    fn address(&self) -> String {
        self.file.path().display().to_string()
    }

    async fn changes(&mut self, known: Option<i64>) -> Result<Option<KeyChanges>, String> {
        let file = self.file.clone();
        let changes = self.run(move |session| {
            file.check_in_place()?;
            session.execute(|connection| Ok(connection.transaction(|connection| read_changes(connection, known))?))
        });
        changes.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

fn read_changes(connection: &mut SqliteConnection, known: Option<i64>) -> QueryResult<Option<KeyChanges>> {
    let version = rows::version(connection)?;
    if known == Some(version) {
        return Ok(None);
    }
    // A backup may have been restored into the file.
    let known = known.filter(|known| *known < version);
    let keys = rows::read(connection, Select::ChangedSince(known.unwrap_or(i64::MIN)), SystemTime::now())?;
    let keys = keys.into_iter().map(StoredKey::from).collect();
    Ok(Some(KeyChanges { version, all: known.is_none(), keys }))
}
