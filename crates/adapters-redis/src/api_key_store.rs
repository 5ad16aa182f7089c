use std::{collections::HashSet, time::Duration};

use animal_store_app::{
    ApiKey, ApiKeyId, ApiKeyLabel, Scopes,
    ports::{Added, ApiKeyStore, ApiKeyStoreError, NewToken, TokenEntry},
};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use redis::{Pipeline, RedisError, Value, aio::MultiplexedConnection, cmd, pipe};
use tokio::time::sleep;

use crate::{
    RedisEndpoint,
    layout::Layout,
    store_error::Failure,
    stored_token::{self, StoredToken},
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
        // Whoever may not say MULTI has each command of a transaction carried out by itself: that must fail before.
        let mut questions = pipe();
        questions.cmd("MULTI").cmd("EXEC").cmd("WATCH").arg(&self.layout.index);
        questions.exec_async(&mut connection).await?;
        Ok(connection)
    }

    /// Decides upon what is there and changes it, unless somebody else does in between: then again.
    async fn change<T, D>(&self, decide: impl Fn(MultiplexedConnection) -> D + Sync) -> Result<T, ApiKeyStoreError>
    where
        T: Send,
        D: Future<Output = Result<Decided<T>, Failure>> + Send,
    {
        let pauses = ExponentialBuilder::new()
            .with_min_delay(MIN_PAUSE)
            .with_max_delay(MAX_PAUSE)
            .with_max_times(MAX_RETRIES)
            .with_jitter()
            .build();
        for pause in pauses {
            let mut connection = self.watch().await?;
            let (mut change, answer) = match decide(connection.clone()).await? {
                Decided::Change(change, answer) => (change, answer),
                Decided::Nothing(answer) => return Ok(answer),
            };
            match change.atomic().query_async::<Value>(&mut connection).await {
                Ok(Value::Nil) => sleep(pause).await,
                Ok(_) => return Ok(answer),
                Err(error) => return Err(changed_unless_refused(error)),
            }
        }
        Err(ApiKeyStoreError::Unavailable("too many others change API keys at the same time".into()))
    }

    /// The names of a key's tokens, oldest first, ended ones included.
    async fn names_of(&self, connection: &mut MultiplexedConnection, id: &ApiKeyId) -> Result<Vec<String>, Failure> {
        let names: Option<String> =
            cmd("HGET").arg(&self.layout.index).arg(id.as_str()).query_async(connection).await?;
        Ok(self.names(&names.unwrap_or_default()))
    }

    fn names(&self, digests: &str) -> Vec<String> {
        digests.split_whitespace().map(|digest| format!("{}{digest}", self.layout.tokens)).collect()
    }

    /// Makes these names the tokens of a key, oldest first.
    fn set_names(&self, change: &mut Pipeline, id: &ApiKeyId, names: &[&str]) {
        let digests: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix(&self.layout.tokens)).collect();
        change.cmd("HSET").arg(&self.layout.index).arg(id.as_str()).arg(digests.join(" ")).ignore();
    }
}

#[async_trait]
impl ApiKeyStore for RedisApiKeyStore {
    async fn add(&self, key: ApiKey, token: NewToken) -> Result<Added, ApiKeyStoreError> {
        let name = &self.layout.token(&token.digest);
        let (key, token) = (&key, &token);
        self.change(|mut connection| async move {
            let mut question = pipe();
            question.cmd("HMGET").arg(name).arg(&stored_token::KEY_FIELDS);
            question.cmd("HEXISTS").arg(&self.layout.index).arg(key.id.as_str()).cmd("TIME");
            let (fields, id_taken, now) = question.query_async(&mut connection).await?;
            if let Some(owner) = stored_token::key(fields)? {
                return Ok(Decided::Nothing(Added::Exists(owner)));
            }
            if id_taken {
                return Err(Failure::IdTaken);
            }
            let mut change = pipe();
            stored_token::store(&mut change, name, key, token, stored_token::time(now));
            self.set_names(&mut change, &key.id, &[name]);
            Ok(Decided::Change(change, Added::New))
        })
        .await
    }

    async fn list(&self) -> Result<Vec<TokenEntry>, ApiKeyStoreError> {
        let mut connection = self.watch().await?;
        let mut question = pipe();
        question.cmd("HGETALL").arg(&self.layout.index).cmd("TIME");
        let (mut index, now): (Vec<(String, String)>, _) =
            question.query_async(&mut connection).await.map_err(Failure::from)?;
        index.sort();
        let names: Vec<String> = index.iter().flat_map(|(_, digests)| self.names(digests)).collect();
        let tokens = StoredToken::read_all(&mut connection, &names).await?;
        let entries: Vec<TokenEntry> = tokens.into_iter().map(|token| token.entry(stored_token::time(now))).collect();

        let alive: HashSet<&str> = entries.iter().map(|entry| entry.key.id.as_str()).collect();
        let mut tidied = pipe();
        for (id, _) in index.iter().filter(|(id, _)| !alive.contains(id.as_str())) {
            tidied.cmd("HDEL").arg(&self.layout.index).arg(id).ignore();
        }
        if !tidied.is_empty() {
            // Ids of keys whose tokens have all ended. The list is the same where they stay.
            let _ = tidied.atomic().exec_async(&mut connection).await;
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
            cmd("WATCH").arg(&names).exec_async(&mut connection).await?;
            let tokens = StoredToken::read_all(&mut connection, &names).await?;
            let Some(newest) = tokens.last() else { return Ok(Decided::Nothing(None)) };
            let mut question = pipe();
            question.cmd("EXISTS").arg(name).cmd("TIME");
            let (token_taken, now) = question.query_async(&mut connection).await?;
            if token_taken {
                return Err(Failure::TokenTaken);
            }
            let lifetime = token.lifetime.or(newest.left);
            let mut change = pipe();
            let new = NewToken { lifetime, ..token.clone() };
            stored_token::store(&mut change, name, &newest.key, &new, stored_token::time(now));
            for old in tokens.iter().filter(|old| old.left.is_none_or(|left| left > grace)) {
                stored_token::end_after(&mut change, &old.name, grace);
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
        while !names.is_empty() {
            if key.is_none() {
                key = newest_key(&mut connection, &names, id).await?;
            }
            cmd("DEL").arg(&names).exec_async(&mut connection).await.map_err(changed_unless_refused)?;
            let left = self.names_of(&mut connection, id).await;
            let left = left.map_err(|failure| ApiKeyStoreError::OutcomeUnknown(failure.into()))?;
            if left == names {
                // Where this fails, the next list does it.
                let _ = cmd("HDEL").arg(&self.layout.index).arg(id.as_str()).exec_async(&mut connection).await;
                break;
            }
            names = left;
        }
        Ok(key)
    }
}

/// What Redis refused itself, it did not do; of all else, nobody knows.
fn changed_unless_refused(error: RedisError) -> ApiKeyStoreError {
    let refused = error.code().is_some();
    let cause = Failure::Redis(error);
    if refused { cause.into() } else { ApiKeyStoreError::OutcomeUnknown(cause.into()) }
}

/// Whose tokens these are; `None` where all of them have ended.
async fn newest_key(
    connection: &mut MultiplexedConnection,
    names: &[String],
    id: &ApiKeyId,
) -> Result<Option<ApiKey>, Failure> {
    match StoredToken::read_all(connection, names).await {
        Ok(tokens) => Ok(tokens.last().map(|token| token.key.clone())),
        // It can be revoked all the same.
        Err(Failure::Corrupt(_)) => {
            let label = ApiKeyLabel::parse("unreadable").expect("a label");
            Ok(Some(ApiKey { id: id.clone(), label, scopes: Scopes::default() }))
        }
        Err(error) => Err(error),
    }
}
