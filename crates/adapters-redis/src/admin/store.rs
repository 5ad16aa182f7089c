use std::{collections::HashSet, time::Duration};

use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyDigest, ApiKeyId, ApiKeyLabel, ApiKeyRefusal, IssuedApiKey, NewToken, Scopes,
    ports::{ApiKeyChangeError, ApiKeyStore, ChangedApiKey, RecordedUses, StoreFailure},
};
use async_trait::async_trait;
use redis::{cmd, pipe};

use super::{
    stored_key::{Index, join_tokens, parse_digests, read_clock, read_entries, read_entry, read_tokens, replace},
    transaction::{Decision, retry, transact, watch},
};
use crate::{
    connection::{Connection, RedisEndpoint},
    keyspace::{Keyspace, RedisFailure},
    use_record,
};

/// Deletes a key if its entry in the index is the one that was read, in one step that a full Redis executes as well.
///
/// `KEYS`: the index, and the tokens of the entry. `ARGV`: the id and the entry. The first `HDEL` changes nothing: it
/// fails if the last one would, before any token is deleted. A token of the entry may have expired and belong to
/// another key of the index now. A value that is not a token is deleted.
const DELETE_KEY: &str = "
    if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
    redis.call('HDEL', KEYS[1], '')
    for i = 2, #KEYS do
        local owner = redis.pcall('HGET', KEYS[i], 'id')
        local moved = type(owner) == 'string' and owner ~= ARGV[1] and redis.call('HGET', KEYS[1], owner)
        if not moved then redis.call('DEL', KEYS[i]) end
    end
    redis.call('HDEL', KEYS[1], ARGV[1])
    return 1";

/// Adds, lists, rotates and revokes API keys in Redis.
#[derive(Debug)]
pub struct RedisApiKeyStore(Keyspace);

/// The result of a change that did not fail.
type Outcome = Result<ChangedApiKey, ApiKeyRefusal>;

#[async_trait]
impl ApiKeyStore for RedisApiKeyStore {
    async fn change(&self, change: ApiKeyChange) -> Result<ChangedApiKey, ApiKeyChangeError> {
        let outcome = if matches!(change, ApiKeyChange::Revoke(_)) {
            retry(|| self.revoke(&change)).await
        } else {
            transact(&self.0, |connection| self.decide(connection, &change)).await
        };
        Ok(outcome.map_err(|failure| self.failed(failure))??)
    }

    async fn list(&self) -> Result<Vec<IssuedApiKey>, StoreFailure> {
        let listed = match transact(&self.0, |connection| self.read_keys(connection, true)).await {
            // A full Redis, or one that does not permit `HDEL`, keeps the ids of expired keys.
            Err(RedisFailure::Command(_) | RedisFailure::Unconfirmed(_)) => {
                transact(&self.0, |connection| self.read_keys(connection, false)).await
            }
            listed => listed,
        };
        listed.map_err(|failure| self.failed(failure))
    }

    async fn list_uses(&self) -> Result<RecordedUses, StoreFailure> {
        let uses = async { Ok(use_record::read(&mut self.0.connect(|_| ()).await?, &self.0.layout).await?) };
        uses.await.map_err(|failure| self.failed(failure))
    }

    /// Queues the commands of an import without `EXEC`: Redis checks the permissions and its memory when a command is
    /// queued. The end of the connection discards them; `DISCARD` would need a permission of its own.
    async fn check_writable(&self) -> Result<(), StoreFailure> {
        let queued = async {
            let mut connection = watch(&self.0).await?;
            let (commands, _) = self.decide(connection.clone(), &sample()).await?;
            cmd("MULTI").exec_async(&mut connection).await?;
            Ok(commands.exec_async(&mut connection).await?)
        };
        queued.await.map_err(|failure| self.failed(failure))
    }
}

impl RedisApiKeyStore {
    /// Creates a store. Names in Redis begin with `prefix`. The timeout bounds opening a connection, and each response.
    pub fn new(endpoint: RedisEndpoint, prefix: &str, timeout: Duration) -> Self {
        Self(Keyspace::new(endpoint, prefix, timeout))
    }

    /// Applies the rules to what Redis holds, and returns the commands that write the result.
    async fn decide(&self, mut connection: Connection, change: &ApiKeyChange) -> Decision<Outcome> {
        let layout = &self.0.layout;
        let index = read_entry(&mut connection, layout, change.id()).await?;
        let before = join_tokens(read_entries(&mut connection, layout, &index).await?)?.pop();
        let given = read_tokens(&mut connection, layout, &change.digests()).await?.into_iter().flatten();
        let owner = join_tokens(given)?.into_iter().map(|owner| owner.key).find(|owner| owner.id != *change.id());
        let at = read_clock(&mut connection).await?;
        Ok(match change.apply(before.as_ref(), owner.as_ref(), at) {
            Ok(after) => {
                let commands = replace(layout, change.id(), before.as_ref(), after.as_ref());
                (commands, Ok(ChangedApiKey { before, after, at }))
            }
            Err(refusal) => (pipe(), Err(refusal)),
        })
    }

    /// Revokes a key, even if its tokens are not valid. `None`: the entry of the index was changed meanwhile. Not a
    /// transaction, which a full Redis would refuse.
    async fn revoke(&self, change: &ApiKeyChange) -> Result<Option<Outcome>, RedisFailure> {
        let (layout, id) = (&self.0.layout, change.id());
        let mut connection = self.0.connect(|_| ()).await?;
        let index = read_entry(&mut connection, layout, id).await?;
        let found = read_entries(&mut connection, layout, &index).await?;
        let unreadable = (!found.is_empty()).then(|| IssuedApiKey::unreadable(id.clone()));
        let before = join_tokens(found.into_iter().filter(Result::is_ok))?.pop().or(unreadable);
        let at = read_clock(&mut connection).await?;
        if let Err(refusal) = change.apply(before.as_ref(), None, at) {
            return Ok(Some(Err(refusal)));
        }
        let entry = &index[id.as_str()];
        let names: Vec<_> = parse_digests(entry).map(|digest| layout.token(&digest)).collect();
        let mut command = cmd("EVAL");
        command.arg(DELETE_KEY).arg(1 + names.len()).arg(&layout.index).arg(names).arg(id.as_str()).arg(entry);
        let deleted: bool = command.query_async(&mut connection).await.map_err(RedisFailure::of_change)?;
        Ok(deleted.then_some(Ok(ChangedApiKey { before, after: None, at })))
    }

    /// Reads all keys. With `clean`, returns the command that removes the ids of expired keys from the index.
    async fn read_keys(&self, mut connection: Connection, clean: bool) -> Decision<Vec<IssuedApiKey>> {
        let layout = &self.0.layout;
        let index: Index = cmd("HGETALL").arg(&layout.index).query_async(&mut connection).await?;
        let keys = join_tokens(read_entries(&mut connection, layout, &index).await?)?;
        let ids: HashSet<_> = keys.iter().map(|key| key.key.id.as_str()).collect();
        let expired: Vec<_> = index.keys().filter(|id| clean && !ids.contains(id.as_str())).collect();
        let mut commands = pipe();
        if !expired.is_empty() {
            commands.cmd("HDEL").arg(&layout.index).arg(expired).ignore();
        }
        Ok((commands, keys))
    }

    fn failed(&self, failure: RedisFailure) -> StoreFailure {
        match failure {
            // The cause names the server.
            RedisFailure::Timeout => StoreFailure::Unavailable(self.0.describe(&failure).into()),
            failure => self.0.store_failure(&failure),
        }
    }
}

/// The addition of a key that no store has: no key has an empty id.
fn sample() -> ApiKeyChange {
    let label = ApiKeyLabel::parse("check").expect("a valid label");
    let key = ApiKey { id: ApiKeyId::new(""), label, scopes: Scopes::default() };
    let lifetime = Some(Duration::from_hours(1));
    let token = NewToken { digest: ApiKeyDigest::from_bytes([0; 32]), last_four: String::new(), lifetime };
    ApiKeyChange::Add(key, token)
}
