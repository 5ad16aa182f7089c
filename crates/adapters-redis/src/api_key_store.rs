use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use animal_store_app::{
    ApiKey, ApiKeyId,
    ports::{AddedKey, ApiKeyStore, ApiKeyStoreError, NewToken, TokenEntry},
};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use redis::{Pipeline, Value, aio::MultiplexedConnection, cmd, pipe};
use tokio::time::sleep;

use crate::{
    RedisEndpoint,
    layout::Layout,
    store_error::{Failure, changed_unless_refused, since, unknown},
    stored_token::{self, Owned, StoredToken, read_all, readable, whose},
};

/// API keys of Redis, issued, rotated and revoked.
///
/// Additions and rotations are transactions of Redis that watch the index, which every change touches. They need no
/// scripts, and where one of their commands is not permitted, none is carried out.
#[derive(Debug)]
pub struct RedisApiKeyStore {
    endpoint: RedisEndpoint,
    layout: Layout,
    timeout: Duration,
}

/// How often a change is tried again while others come in between.
const MAX_RETRIES: usize = 40;
const MIN_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// What is to be done, and what is to be answered then.
enum Decided<T> {
    Change(Pipeline, T),
    Nothing(T),
}

impl RedisApiKeyStore {
    /// Keeps keys in this server, under names that begin with `prefix`. Each command is answered within `timeout`.
    pub fn new(endpoint: RedisEndpoint, prefix: &str, timeout: Duration) -> Self {
        Self { endpoint, layout: Layout::new(prefix), timeout }
    }

    async fn connect(&self) -> Result<MultiplexedConnection, Failure> {
        Ok(self.endpoint.connect(self.timeout, |_| ()).await?)
    }

    /// A connection that watches the index.
    async fn watch(&self) -> Result<MultiplexedConnection, Failure> {
        let mut connection = self.connect().await?;
        // Whoever may not say MULTI has each command of a transaction carried out by itself, and the driver does not
        // expect MULTI to be refused: that must fail before.
        let mut questions = pipe();
        questions.cmd("MULTI").cmd("EXEC").cmd("WATCH").arg(&self.layout.index);
        questions.exec_async(&mut connection).await?;
        Ok(connection)
    }

    /// Decides upon what is there and changes it, unless somebody else does in between: then again. Where there is
    /// nothing to change, what was seen was there at one time.
    async fn change<T, D>(&self, decide: impl Fn(MultiplexedConnection) -> D + Sync) -> Result<T, ApiKeyStoreError>
    where
        T: Send,
        D: Future<Output = Result<Decided<T>, Failure>> + Send,
    {
        for pause in pauses() {
            let mut connection = self.watch().await?;
            let (done, answer) = match decide(connection.clone()).await? {
                Decided::Change(mut change, answer) => {
                    let done = change.atomic().query_async::<Value>(&mut connection).await;
                    (done.map_err(changed_unless_refused)?, answer)
                }
                Decided::Nothing(answer) => (execute_nothing(&mut connection).await?, answer),
            };
            if done != Value::Nil {
                return Ok(answer);
            }
            sleep(pause).await;
        }
        Err(Failure::Others.into())
    }

    /// The names that the index has for a key, oldest first. They may have ended.
    async fn names_of(&self, connection: &mut MultiplexedConnection, id: &ApiKeyId) -> Result<Vec<Owned>, Failure> {
        let names: Option<String> =
            cmd("HGET").arg(&self.layout.index).arg(id.as_str()).query_async(connection).await?;
        Ok(self.names(id.as_str(), &names.unwrap_or_default()))
    }

    fn names(&self, id: &str, digests: &str) -> Vec<Owned> {
        let owned = |digest| Owned { id: id.to_owned(), name: format!("{}{digest}", self.layout.tokens) };
        digests.split_whitespace().map(owned).collect()
    }

    /// Every token of every key, and the ids whose tokens have all ended.
    async fn read_index(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(Vec<TokenEntry>, Vec<String>), Failure> {
        let index: BTreeMap<String, String> = cmd("HGETALL").arg(&self.layout.index).query_async(connection).await?;
        let names: Vec<Owned> = index.iter().flat_map(|(id, digests)| self.names(id, digests)).collect();
        let tokens = readable(read_all(connection, &names).await?)?;
        let alive: HashSet<String> = tokens.iter().map(|token| token.key.id.as_str().to_owned()).collect();
        let ended = index.into_keys().filter(|id| !alive.contains(id)).collect();
        Ok((tokens.into_iter().map(StoredToken::entry).collect(), ended))
    }

    async fn forget_ids(&self, ids: &[String]) -> Result<(), Failure> {
        let mut connection = self.connect().await?;
        Ok(cmd("HDEL").arg(&self.layout.index).arg(ids).exec_async(&mut connection).await?)
    }

    /// Makes these names the tokens of a key, oldest first.
    fn set_names(&self, change: &mut Pipeline, id: &ApiKeyId, names: &[&str]) {
        let digests: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix(&self.layout.tokens)).collect();
        change.cmd("HSET").arg(&self.layout.index).arg(id.as_str()).arg(digests.join(" ")).ignore();
    }
}

#[async_trait]
impl ApiKeyStore for RedisApiKeyStore {
    async fn add(&self, key: ApiKey, token: NewToken) -> Result<AddedKey, ApiKeyStoreError> {
        let name = &self.layout.token(&token.digest);
        let (key, token) = (&key, &token);
        self.change(|mut connection| async move {
            let mut question = pipe();
            question.cmd("HMGET").arg(name).arg(&stored_token::KEY_FIELDS);
            question.cmd("HEXISTS").arg(&self.layout.index).arg(key.id.as_str()).cmd("TIME");
            let (fields, id_taken, now) = question.query_async(&mut connection).await?;
            if let Some(owner) = stored_token::key(fields)? {
                return Ok(Decided::Nothing(AddedKey::Existing(owner)));
            }
            if id_taken {
                return Err(Failure::IdTaken);
            }
            let now = stored_token::time(now);
            let end = token.lifetime.map(|lifetime| now.saturating_add(lifetime));
            let mut change = pipe();
            stored_token::store(&mut change, name, key, token, now, end);
            self.set_names(&mut change, &key.id, &[name]);
            Ok(Decided::Change(change, AddedKey::New))
        })
        .await
    }

    async fn list(&self) -> Result<Vec<TokenEntry>, ApiKeyStoreError> {
        let read = |mut connection| async move { Ok(Decided::Nothing(self.read_index(&mut connection).await?)) };
        let (entries, ended) = self.change(read).await?;
        if !ended.is_empty() {
            // What has ended stays so. The list is the same where this fails.
            let _ = self.forget_ids(&ended).await;
        }
        Ok(entries)
    }

    async fn rotate(
        &self,
        id: &ApiKeyId,
        token: NewToken,
        grace: Duration,
    ) -> Result<Option<ApiKey>, ApiKeyStoreError> {
        let name = &self.layout.token(&token.digest);
        let token = &token;
        self.change(|mut connection| async move {
            let names = self.names_of(&mut connection, id).await?;
            if names.is_empty() {
                return Ok(Decided::Nothing(None));
            }
            // A revocation ends them without touching the index first.
            let watched: Vec<&str> = names.iter().map(|owned| owned.name.as_str()).collect();
            cmd("WATCH").arg(watched).exec_async(&mut connection).await?;
            let tokens = readable(read_all(&mut connection, &names).await?)?;
            let Some(newest) = tokens.last() else { return Ok(Decided::Nothing(None)) };
            let mut question = pipe();
            question.cmd("EXISTS").arg(name).cmd("TIME");
            let (token_taken, now) = question.query_async(&mut connection).await?;
            if token_taken {
                return Err(Failure::TokenTaken);
            }
            let now = stored_token::time(now);
            let end = token.lifetime.map(|lifetime| now.saturating_add(lifetime)).or(newest.end());
            let mut change = pipe();
            stored_token::store(&mut change, name, &newest.key, token, now, end);
            for old in tokens.iter().filter(|old| old.left.is_none_or(|left| left > grace)) {
                stored_token::end_at(&mut change, &old.name, now.saturating_add(grace));
            }
            let names: Vec<&str> = tokens.iter().map(|token| token.name.as_str()).chain([name.as_str()]).collect();
            self.set_names(&mut change, id, &names);
            Ok(Decided::Change(change, Some(newest.key.clone())))
        })
        .await
    }

    /// Without a transaction: a Redis that is full takes none, and a key must be able to end even then. Deleting is one
    /// command. A rotation that saw the tokens before it watches them, and fails; one that comes later finds none.
    async fn revoke(&self, id: &ApiKeyId) -> Result<Option<ApiKey>, ApiKeyStoreError> {
        let mut connection = self.connect().await?;
        let mut names = self.names_of(&mut connection, id).await?;
        let mut key = None;
        for _ in 0..MAX_RETRIES {
            let found = read_all(&mut connection, &names).await.map_err(|error| since(key.is_some(), error.into()))?;
            if !found.is_empty() {
                let ours: Vec<&str> = found.iter().map(|(owned, _)| owned.name.as_str()).collect();
                let deleted = cmd("DEL").arg(ours).exec_async(&mut connection).await;
                deleted.map_err(
                    |error| if key.is_some() { unknown(error.into()) } else { changed_unless_refused(error) },
                )?;
                key = key.or_else(|| Some(whose(&found, id)));
            }
            let left = self.names_of(&mut connection, id).await.map_err(|failure| since(key.is_some(), failure))?;
            if left == names {
                // Where this fails, the next list does it.
                let _ = cmd("HDEL").arg(&self.layout.index).arg(id.as_str()).exec_async(&mut connection).await;
                return Ok(key);
            }
            names = left;
        }
        Err(unknown(Failure::Others))
    }
}

fn pauses() -> impl Iterator<Item = Duration> + Send {
    ExponentialBuilder::new()
        .with_min_delay(MIN_PAUSE)
        .with_max_delay(MAX_PAUSE)
        .with_max_times(MAX_RETRIES)
        .with_jitter()
        .build()
}

/// A transaction without commands, which a full Redis takes, too: nil where what is watched has changed.
async fn execute_nothing(connection: &mut MultiplexedConnection) -> Result<Value, Failure> {
    let (_, executed): (Value, Value) = pipe().cmd("MULTI").cmd("EXEC").query_async(connection).await?;
    Ok(executed)
}
