use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyRefusal, AuditEntry, IssuedApiKey, ports::ChangedApiKey,
};
use redis::{AsyncTypedCommands, Pipeline, cmd};

use super::{
    index::{Delete, Index},
    token::{ListedToken, StoredToken},
    transaction::{Decision, Write},
};
use crate::{
    connection::Connection,
    keyspace::{self, Keyspace, RedisFailure},
};

impl Keyspace {
    /// Applies the rules to what Redis holds, and returns what writes the result.
    pub(super) async fn decide(
        &self,
        mut connection: Connection,
        change: &ApiKeyChange,
        by: &str,
    ) -> keyspace::Result<Decision<Result<ChangedApiKey, ApiKeyRefusal>>> {
        let id = change.id().as_str();
        let entry = connection.hget(&self.index, id).await?.unwrap_or_default();
        let before = self.read_before(&mut connection, change, &entry).await?;
        let owner = self.read_owner(&mut connection, change).await?;
        let at = now(&mut connection).await?;
        let applied = change.apply(before.as_ref(), owner.as_ref(), at);
        let after = match applied {
            Ok(after) => after,
            Err(refusal) => {
                return Ok(Decision {
                    write: Write::Nothing,
                    result: Err(refusal),
                });
            }
        };
        let changed = ChangedApiKey { before, after, at };
        let write = match change {
            ApiKeyChange::Revoke(_) => Write::Script(self.delete(id, &entry, Delete::Always)),
            _ if changed.before == changed.after => Write::Nothing,
            _ => Write::Transaction(self.commands(change, &changed, by)),
        };
        Ok(Decision {
            write,
            result: Ok(changed),
        })
    }

    fn commands(&self, change: &ApiKeyChange, changed: &ChangedApiKey, by: &str) -> Pipeline {
        let mut commands = self.replace(change.id().as_str(), changed);
        if let Some(entry) = AuditEntry::of(change, changed, by) {
            self.add_to_audit_log(&mut commands, &[entry], changed.at);
        }
        commands
    }

    /// Reads the key that is to be changed. One that cannot be read can be revoked.
    async fn read_before(
        &self,
        connection: &mut Connection,
        change: &ApiKeyChange,
        entry: &str,
    ) -> keyspace::Result<Option<IssuedApiKey>> {
        let mut index = Index::new();
        index.insert(change.id().to_string(), entry.to_owned());
        let keys = self.read_keys(connection, &index).await;
        if let ApiKeyChange::Revoke(id) = change
            && let Err(RedisFailure::Corrupt(_)) = keys
        {
            return Ok(Some(IssuedApiKey::unreadable(id.clone())));
        }
        Ok(keys?.pop())
    }

    /// Reads another key that has a token of the change.
    async fn read_owner(
        &self,
        connection: &mut Connection,
        change: &ApiKeyChange,
    ) -> keyspace::Result<Option<ApiKey>> {
        let id = change.id();
        let mut given = Vec::new();
        for digest in change.digests() {
            given.push(ListedToken {
                id: id.as_str(),
                digest,
            });
        }
        for stored in self.read_tokens(connection, &given).await? {
            if let Some(StoredToken { key: owner, .. }) = stored
                && owner.id != *id
            {
                return Ok(Some(owner));
            }
        }
        Ok(None)
    }
}

/// Returns the time of the server.
pub(super) async fn now(connection: &mut Connection) -> keyspace::Result<SystemTime> {
    let time = cmd("TIME").query_async(connection).await;
    let (seconds, microseconds): (u64, u32) = time?;
    Ok(UNIX_EPOCH + Duration::new(seconds, 1000 * microseconds))
}
