use std::{slice, time::Duration};

use animal_store_adapter_kit::{log_unknown_revocation, log_unrecorded_revocation};
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyId, ApiKeyLabel, ApiToken, AuditEntry, IssuedApiKey, NewToken,
    Scopes,
    ports::{ApiKeyChangeError, ApiKeyStore, Cause, ChangedApiKey, RecordedUses, StoreResult},
};
use async_trait::async_trait;
use redis::{AsyncTypedCommands, cmd};
use tokio::sync::Mutex;

use super::{
    change::now,
    transaction::{Decision, Executed, Write},
};
use crate::{
    connection::{Connection, RedisEndpoint},
    keyspace::{self, Keyspace},
    use_record,
};

/// Adds, lists, rotates and revokes API keys in Redis.
pub struct RedisApiKeyStore {
    keyspace: Keyspace,
    /// Number of replicas that must confirm a change.
    replicas: u8,
    last_change: Mutex<Option<LastChange>>,
}

/// The last change, to wait for its replicas.
struct LastChange {
    connection: Connection,
    has_written: bool,
}

#[async_trait]
impl ApiKeyStore for RedisApiKeyStore {
    async fn change(
        &self,
        change: ApiKeyChange,
        by: &str,
    ) -> Result<ChangedApiKey, ApiKeyChangeError> {
        let decide = |connection| self.keyspace.decide(connection, &change, by);
        let executed = self.keyspace.transact(decide).await;
        let executed = self.keyspace.checked(executed);
        log_unknown_revocation(&change, &executed, by);
        let Executed {
            result,
            mut connection,
            has_written,
        } = executed?;
        if let Ok(changed) = &result {
            self.follow_up(&mut connection, &change, changed, by).await;
        }
        *self.last_change.lock().await = Some(LastChange {
            connection,
            has_written,
        });
        Ok(result?)
    }

    async fn list(&self) -> StoreResult<Vec<IssuedApiKey>> {
        let read = |connection| self.read_all(connection);
        let executed = self.keyspace.transact(read).await;
        Ok(self.keyspace.checked(executed)?.result)
    }

    async fn list_uses(&self) -> StoreResult<RecordedUses> {
        let uses = use_record::read(&self.keyspace).await;
        self.keyspace.checked(uses)
    }

    async fn audit_log(&self) -> StoreResult<Vec<AuditEntry>> {
        let log = self.keyspace.read_audit_log().await;
        self.keyspace.checked(log)
    }

    async fn append_audit(&self, entries: Vec<AuditEntry>) -> StoreResult<()> {
        let appended = self.append(&entries).await;
        self.keyspace.checked(appended)
    }

    async fn check_writable(&self) -> StoreResult<()> {
        let queued = self.queue_sample().await;
        self.keyspace.checked(queued)
    }

    /// Waits for replicas. Each of them has all changes before the last one as well.
    async fn confirm_changes(&self) -> Result<(), Cause> {
        let required = u64::from(self.replicas);
        let last_change = self.last_change.lock().await.take();
        let Some(last_change) = last_change.filter(|_| required > 0) else {
            return Ok(());
        };
        let confirmed = self.wait_for_replicas(last_change).await;
        let confirmed = confirmed.map_err(|failure| self.keyspace.describe(&failure))?;
        if confirmed < required {
            let endpoint = &self.keyspace.endpoint;
            let problem = format!(
                "Redis at {endpoint}: {confirmed} of {required} replicas confirmed it in time"
            );
            return Err(problem.into());
        }
        Ok(())
    }
}

impl RedisApiKeyStore {
    /// Creates a store. Names in Redis begin with `prefix`. The timeout bounds opening a connection, and each response.
    /// `replicas`: number of those that must confirm a change.
    pub fn new(endpoint: RedisEndpoint, prefix: &str, timeout: Duration, replicas: u8) -> Self {
        Self {
            keyspace: Keyspace::new(endpoint, prefix, timeout),
            replicas,
            last_change: Mutex::default(),
        }
    }

    /// Returns the number of replicas that have this change.
    async fn wait_for_replicas(&self, change: LastChange) -> keyspace::Result<u64> {
        let mut connection = change.connection;
        // A change without a write may repeat one that the replicas lack.
        if !change.has_written {
            let touched = self.keyspace.touch_index();
            touched.exec_async(&mut connection).await?;
        }
        // Redis responds before the timeout of the connection.
        let wait = (self.keyspace.timeout / 2).as_millis();
        let mut command = cmd("WAIT");
        command.arg(self.replicas).arg(wait);
        Ok(command.query_async(&mut connection).await?)
    }

    /// Writes what may fail after a change. An import is one of many: a later change cleans up.
    async fn follow_up(
        &self,
        connection: &mut Connection,
        change: &ApiKeyChange,
        changed: &ChangedApiKey,
        by: &str,
    ) {
        if let ApiKeyChange::Revoke(_) = change
            && let Some(entry) = AuditEntry::of(change, changed, by)
        {
            self.record_revocation(connection, &entry).await;
        }
        // An instance may have written uses after the revocation of an earlier key with this id.
        if changed.before.is_none() || changed.after.is_none() {
            let _ = use_record::delete(&self.keyspace, connection, change.id().as_str()).await;
        }
        if !matches!(change, ApiKeyChange::Import(_)) {
            let _ = self.keyspace.remove_expired_keys(connection).await;
        }
    }

    async fn record_revocation(&self, connection: &mut Connection, entry: &AuditEntry) {
        let entries = slice::from_ref(entry);
        let recorded = self.keyspace.append_audit(connection, entries, entry.at);
        if let Err(failure) = recorded.await {
            let reason = self.keyspace.describe(&failure);
            log_unrecorded_revocation(&entry.key.id, &entry.by, &reason);
        }
    }

    async fn append(&self, entries: &[AuditEntry]) -> keyspace::Result<()> {
        let mut connection = self.keyspace.connect().await?;
        let now = now(&mut connection).await?;
        let appended = self.keyspace.append_audit(&mut connection, entries, now);
        appended.await
    }

    async fn read_all(
        &self,
        mut connection: Connection,
    ) -> keyspace::Result<Decision<Vec<IssuedApiKey>>> {
        let index = connection.hgetall(&self.keyspace.index).await?;
        let index = index.into_iter().collect();
        Ok(Decision {
            write: Write::Nothing,
            result: self.keyspace.read_keys(&mut connection, &index).await?,
        })
    }

    /// Queues the commands of a change without `EXEC`: Redis checks the permissions and its memory when a command is
    /// queued. The end of the connection discards them; `DISCARD` would need a permission of its own.
    async fn queue_sample(&self) -> keyspace::Result<()> {
        let mut connection = self.keyspace.watch().await?;
        let sample = sample();
        let decision = self.keyspace.decide(connection.clone(), &sample, "");
        if let Write::Transaction(commands) = decision.await?.write {
            cmd("MULTI").exec_async(&mut connection).await?;
            commands.exec_async(&mut connection).await?;
        }
        Ok(())
    }
}

/// The addition of a key that no store has: every id that is made has 11 characters.
fn sample() -> ApiKeyChange {
    let key = ApiKey {
        id: ApiKeyId::parse("check").expect("a valid id"),
        label: ApiKeyLabel::parse("check").expect("a valid label"),
        scopes: Scopes::default(),
    };
    let token = ApiToken::from_random(&[0; 32]);
    ApiKeyChange::Add(key, NewToken::new(&token, Some(Duration::from_hours(1))))
}
