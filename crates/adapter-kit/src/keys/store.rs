use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyId, AuditEntry, IssuedApiKey, NewToken,
    ports::{ApiKeyChangeError, ApiKeyStore, ChangedApiKey, RecordedUses, StoreResult},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::{sync::Mutex, task::JoinHandle};

use super::{
    audit::{append_audit, audit_log, log_unknown_revocation, log_unrecorded_revocation},
    change::{self, Outcome},
    reads::list,
    sql::{Access, KeyDatabase, KeySession, Sql},
    statements,
    uses::{SqlUses, list_uses},
};
use crate::{ApiKeySnapshot, ApiKeyUseRecord};

/// Changes and lists API keys in a database. Other processes may do so, and serve requests, at the same time.
pub struct SqlApiKeyStore<D: KeyDatabase> {
    database: D,
    /// The session of changes, which take turns: a copy makes many.
    changes: Mutex<D::Session>,
}

impl<D: KeyDatabase> SqlApiKeyStore<D> {
    /// Creates the store. The schema has to be up to date.
    pub fn new(database: D) -> Self {
        let changes = Mutex::new(database.session());
        Self { database, changes }
    }

    /// Starts a directory of the keys, with a session of its own: see [`ApiKeySnapshot::new`]. The handle resolves
    /// after the directory is dropped, and its session is closed.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_directory(&self, registry: &mut Registry) -> (ApiKeySnapshot, JoinHandle<()>) {
        let (directory, task) =
            ApiKeySnapshot::new(self.database.session(), self.database.timeout(), registry);
        (directory, tokio::spawn(task))
    }

    /// Starts a record of uses: see [`ApiKeyUseRecord::start`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start_uses(&self, registry: &mut Registry) -> (ApiKeyUseRecord, JoinHandle<()>) {
        ApiKeyUseRecord::start(
            self.uses(),
            ApiKeyUseRecord::MAX_KEYS,
            ApiKeyUseRecord::INTERVAL,
            registry,
        )
    }

    /// Returns the store of the uses of the keys.
    pub fn uses(&self) -> SqlUses<D> {
        SqlUses(self.database.clone())
    }

    /// Adds a key with its first token if no key was ever changed in the store. Returns whether it was added. Of
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
        let change = ApiKeyChange::Add(key, token);
        let by = by.to_owned();
        let added = self.write(move |sql| {
            if change::lock_version(sql)? > 0 {
                return Ok(None);
            }
            change::apply(sql, &change, &by).map(Some)
        });
        match added.await? {
            None => Ok(false),
            Some(Outcome::Changed(_)) => Ok(true),
            Some(Outcome::Refused(refusal)) => Err(refusal.into()),
        }
    }

    /// Records a revocation that is committed.
    async fn record_revocation(&self, change: &ApiKeyChange, changed: &ChangedApiKey, by: &str) {
        let entry = AuditEntry::of(change, changed, by);
        let at = changed.at;
        let record = self.write(move |sql| append_audit(sql, entry, at));
        if let Err(failure) = record.await {
            log_unrecorded_revocation(change.id(), by, &failure.reason());
        }
    }

    /// Deletes the uses of a revoked key with the id of a new one. The change of the new key is committed: the user of
    /// the instances may lock the uses, and a revocation waits for the change before it.
    async fn delete_uses(&self, api_key: &ApiKeyId) {
        let values = [api_key.as_str().into()];
        let delete = self.write(move |sql| sql.rows(statements::DELETE_USES, &values));
        if let Err(failure) = delete.await {
            let reason = failure.reason();
            tracing::warn!(%api_key, reason, "the last uses of an earlier key with this id cannot be deleted");
        }
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let mut session = self.changes.lock().await;
        session.transact(Access::Write, work).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.database.session().transact(Access::Read, work).await
    }
}

#[async_trait]
impl<D: KeyDatabase> ApiKeyStore for SqlApiKeyStore<D> {
    async fn change(
        &self,
        change: ApiKeyChange,
        by: &str,
    ) -> Result<ChangedApiKey, ApiKeyChangeError> {
        let applied = {
            let change = change.clone();
            let by = by.to_owned();
            self.write(move |sql| change::apply(sql, &change, &by))
        };
        let applied = applied.await;
        log_unknown_revocation(&change, &applied, by);
        let changed = match applied? {
            Outcome::Changed(changed) => changed,
            Outcome::Refused(refusal) => return Err(refusal.into()),
        };
        match change {
            ApiKeyChange::Revoke(_) => self.record_revocation(&change, &changed, by).await,
            _ if changed.before.is_none() => self.delete_uses(change.id()).await,
            _ => {}
        }
        Ok(changed)
    }

    async fn list(&self) -> StoreResult<Vec<IssuedApiKey>> {
        self.read(list).await
    }

    async fn list_uses(&self) -> StoreResult<RecordedUses> {
        self.read(list_uses).await
    }

    async fn audit_log(&self) -> StoreResult<Vec<AuditEntry>> {
        self.read(audit_log).await
    }

    async fn append_audit(&self, entries: Vec<AuditEntry>) -> StoreResult<()> {
        let append = move |sql: &mut dyn Sql| {
            let now = sql.now()?;
            append_audit(sql, entries, now)
        };
        self.write(append).await
    }

    async fn check_writable(&self) -> StoreResult<()> {
        self.database.session().check_writable().await
    }
}
