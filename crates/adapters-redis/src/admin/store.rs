use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_adapter_kit::log_unrecorded_revocation;
use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyId, ApiKeyLabel, ApiKeyRefusal, ApiToken, AuditEntry, IssuedApiKey,
    NewToken, Scopes,
    ports::{ApiKeyChangeError, ApiKeyStore, Cause, ChangedApiKey, RecordedUses, StoreFailure},
};
use async_trait::async_trait;
use redis::{RedisError, cmd, pipe};

use super::{stored_key::Index, transaction::Decision};
use crate::{
    connection::{Connection, RedisEndpoint},
    keyspace::{self, Keyspace, RedisFailure},
    use_record,
};

/// Number of ids that a change examines.
const EXAMINED: usize = 20;

/// Adds, lists, rotates and revokes API keys in Redis.
pub struct RedisApiKeyStore {
    keyspace: Keyspace,
    /// Number of replicas that must confirm a change.
    replicas: u8,
    /// The connection of the last change, to wait for its replicas.
    last_change: Mutex<Option<Connection>>,
}

#[async_trait]
impl ApiKeyStore for RedisApiKeyStore {
    async fn change(
        &self,
        change: ApiKeyChange,
        by: &str,
    ) -> Result<ChangedApiKey, ApiKeyChangeError> {
        let changed = self.keyspace.transact(|connection| async {
            let (mut commands, changed) = self.decide(connection, &change, by).await?;
            // A full Redis refuses commands in a transaction, and the one of a revocation is a step by itself.
            if !matches!(change, ApiKeyChange::Revoke(_)) {
                commands.atomic();
            }
            Ok((commands, changed))
        });
        let (changed, mut connection) = changed
            .await
            .map_err(|failure| self.keyspace.store_failure(&failure))?;
        if let (ApiKeyChange::Revoke(_), Ok(changed)) = (&change, &changed)
            && let Some(entry) = AuditEntry::of(&change, changed, by)
        {
            self.record_revocation(&mut connection, entry).await;
        }
        // An import is one of many. If this fails, for example without a permission, a later change does it.
        if let Ok(changed) = &changed
            && !matches!(change, ApiKeyChange::Import(_))
        {
            let ended = changed.after.is_none().then(|| change.id());
            let _ = self.clean_up(&mut connection, ended).await;
        }
        // Also if it changed nothing: the change before it, by another command, may not be on the replicas.
        *self
            .last_change
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(connection);
        Ok(changed?)
    }

    async fn list(&self) -> Result<Vec<IssuedApiKey>, StoreFailure> {
        let keys = self
            .keyspace
            .transact(|connection| self.read_all(connection))
            .await;
        keys.map(|(keys, _)| keys)
            .map_err(|failure| self.keyspace.store_failure(&failure))
    }

    async fn list_uses(&self) -> Result<RecordedUses, StoreFailure> {
        use_record::read(&self.keyspace)
            .await
            .map_err(|failure| self.keyspace.store_failure(&failure))
    }

    async fn audit_log(&self) -> Result<Vec<AuditEntry>, StoreFailure> {
        let read = async {
            let mut connection = self.keyspace.connect(|_| ()).await?;
            self.keyspace.read_audit_log(&mut connection).await
        };
        read.await
            .map_err(|failure| self.keyspace.store_failure(&failure))
    }

    async fn append_audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreFailure> {
        let add = async {
            let mut connection = self.keyspace.connect(|_| ()).await?;
            let mut commands = pipe();
            self.keyspace
                .append_audit(&mut commands, entries, now(&mut connection).await?);
            Ok(commands.exec_async(&mut connection).await?)
        };
        add.await
            .map_err(|failure: RedisFailure| self.keyspace.store_failure(&failure))
    }

    /// Queues the commands of an import without `EXEC`: Redis checks the permissions and its memory when a command is
    /// queued. The end of the connection discards them; `DISCARD` would need a permission of its own.
    async fn check_writable(&self) -> Result<(), StoreFailure> {
        let queued = async {
            let mut connection = self.keyspace.watch().await?;
            let (commands, _) = self.decide(connection.clone(), &sample(), "").await?;
            cmd("MULTI").exec_async(&mut connection).await?;
            Ok(commands.exec_async(&mut connection).await?)
        };
        queued
            .await
            .map_err(|failure| self.keyspace.store_failure(&failure))
    }

    /// Waits for replicas. Each of them has all changes before the last one as well.
    async fn confirm_changes(&self) -> Result<(), Cause> {
        let last_change = self
            .last_change
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut connection) = last_change.filter(|_| self.replicas > 0) else {
            return Ok(());
        };
        // Redis responds before the timeout of the connection.
        let wait = (self.keyspace.timeout / 2).as_millis();
        let confirmed = cmd("WAIT")
            .arg(self.replicas)
            .arg(wait)
            .query_async(&mut connection)
            .await;
        let confirmed: u64 =
            confirmed.map_err(|error: RedisError| self.keyspace.describe(&error.into()))?;
        if confirmed < self.replicas.into() {
            let (required, endpoint) = (self.replicas, &self.keyspace.endpoint);
            return Err(format!(
                "Redis at {endpoint}: {confirmed} of {required} replicas confirmed it in time"
            )
            .into());
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

    /// Records a revocation, which was applied.
    async fn record_revocation(&self, connection: &mut Connection, entry: AuditEntry) {
        let (by, api_key) = (entry.by.clone(), entry.key.id.clone());
        let mut commands = pipe();
        let at = entry.at;
        self.keyspace.append_audit(&mut commands, [entry], at);
        if let Err(error) = commands.exec_async(connection).await {
            let reason = self.keyspace.describe(&error.into());
            log_unrecorded_revocation(&api_key, &by, &reason);
        }
    }

    /// Applies the rules to what Redis holds, and returns the commands that write the result.
    async fn decide(
        &self,
        mut connection: Connection,
        change: &ApiKeyChange,
        by: &str,
    ) -> Decision<Result<ChangedApiKey, ApiKeyRefusal>> {
        let (keyspace, id, revokes) = (
            &self.keyspace,
            change.id(),
            matches!(change, ApiKeyChange::Revoke(_)),
        );
        let entry: Option<String> = cmd("HGET")
            .arg(&keyspace.index)
            .arg(id.as_str())
            .query_async(&mut connection)
            .await?;
        let entry = entry.unwrap_or_default();
        let index = Index::from([(id.as_str().to_owned(), entry.clone())]);
        let before = match keyspace.read_keys(&mut connection, &index).await {
            Err(RedisFailure::Corrupt(_)) if revokes => Some(IssuedApiKey::unreadable(id.clone())),
            keys => keys?.pop(),
        };
        let given: Vec<_> = change
            .digests()
            .into_iter()
            .map(|digest| (id.as_str(), digest))
            .collect();
        let mut owners = keyspace
            .read_tokens(&mut connection, &given)
            .await?
            .into_iter()
            .map(|(_, owner)| owner.key);
        let owner = owners.find(|owner| owner.id != *id);
        let at = now(&mut connection).await?;
        Ok(match change.apply(before.as_ref(), owner.as_ref(), at) {
            Ok(_) if revokes => (
                keyspace.delete(id.as_str(), &entry, ""),
                Ok(ChangedApiKey {
                    before,
                    after: None,
                    at,
                }),
            ),
            Ok(after) => {
                let mut commands = keyspace.replace(id, before.as_ref(), after.as_ref());
                let changed = ChangedApiKey { before, after, at };
                if let Some(entry) = AuditEntry::of(change, &changed, by) {
                    keyspace.append_audit(&mut commands, [entry], at);
                }
                (commands, Ok(changed))
            }
            Err(refusal) => (pipe(), Err(refusal)),
        })
    }

    /// Reads all keys.
    async fn read_all(&self, mut connection: Connection) -> Decision<Vec<IssuedApiKey>> {
        let index: Index = cmd("HGETALL")
            .arg(&self.keyspace.index)
            .query_async(&mut connection)
            .await?;
        let keys = self.keyspace.read_keys(&mut connection, &index).await?;
        Ok((pipe(), keys))
    }

    /// Deletes the uses of a key that has ended. Removes keys that have expired, with their uses, from the index, of some
    /// that Redis selects: unlike tokens, they do not expire.
    async fn clean_up(
        &self,
        connection: &mut Connection,
        ended: Option<&ApiKeyId>,
    ) -> keyspace::Result<()> {
        if let Some(id) = ended {
            let mut deletions = pipe();
            use_record::delete(&self.keyspace, &mut deletions, id.as_str());
            let _ = deletions.exec_async(connection).await;
        }
        let entries: Vec<(String, String)> = cmd("HRANDFIELD")
            .arg(&self.keyspace.index)
            .arg(EXAMINED)
            .arg("WITHVALUES")
            .query_async(connection)
            .await?;
        let index = Index::from_iter(entries);
        let keys = self.keyspace.read_keys(connection, &index).await?;
        let existing: HashSet<_> = keys.iter().map(|key| key.key.id.as_str()).collect();
        for (id, entry) in index
            .iter()
            .filter(|(id, _)| !existing.contains(id.as_str()))
        {
            let mut deletions = self.keyspace.delete(id, entry, "expired");
            use_record::delete(&self.keyspace, &mut deletions, id);
            deletions.exec_async(connection).await?;
        }
        Ok(())
    }
}

/// Returns the time of the server.
async fn now(connection: &mut Connection) -> keyspace::Result<SystemTime> {
    let (seconds, microseconds): (u64, u32) = cmd("TIME").query_async(connection).await?;
    Ok(UNIX_EPOCH + Duration::new(seconds, 1000 * microseconds))
}

/// The addition of a key that no store has: every id that is made has 11 characters.
fn sample() -> ApiKeyChange {
    let label = ApiKeyLabel::parse("check").expect("a valid label");
    let key = ApiKey {
        id: ApiKeyId::parse("check").expect("a valid id"),
        label,
        scopes: Scopes::default(),
    };
    ApiKeyChange::Add(
        key,
        NewToken::new(
            &ApiToken::from_random(&[0; 32]),
            Some(Duration::from_hours(1)),
        ),
    )
}
