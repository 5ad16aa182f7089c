use std::time::Duration;

use animal_store_app::{
    ApiKey, ApiKeyId, ApiKeyLabel, Scopes,
    ports::{Added, ApiKeyStore, ApiKeyStoreError, NewToken, TokenEntry},
};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use redis::{Pipeline, Value, aio::MultiplexedConnection, cmd, pipe};
use tokio::time::sleep;

use crate::{
    RedisEndpoint,
    layout::Layout,
    store_error::Failure,
    stored_token::{self, StoredToken},
};

/// API keys of Redis, issued, rotated and revoked.
///
/// Every change is a transaction of Redis that watches the index, which every change touches. It needs no scripts,
/// and where one of its commands is not permitted, none is carried out.
#[derive(Debug)]
pub struct RedisApiKeyStore {
    endpoint: RedisEndpoint,
    layout: Layout,
    timeout: Duration,
}

/// Tokens that are read at a time.
const TOKENS_AT_A_TIME: usize = 500;
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

    /// A connection that watches the index.
    async fn watch(&self) -> Result<MultiplexedConnection, Failure> {
        let mut connection = self.endpoint.connect(self.timeout, |_| ()).await?;
        cmd("WATCH").arg(&self.layout.index).exec_async(&mut connection).await?;
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
                // What Redis refused itself, it did not do.
                Err(error) if error.code().is_some() => return Err(Failure::Redis(error).into()),
                Err(error) => return Err(ApiKeyStoreError::OutcomeUnknown(Failure::Redis(error).into())),
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
        let mut entries = Vec::new();
        let mut tidied = pipe();
        for (id, digests) in index {
            let tokens = read(&mut connection, &self.names(&digests)).await?;
            if tokens.is_empty() {
                tidied.cmd("HDEL").arg(&self.layout.index).arg(id).ignore();
            }
            entries.extend(tokens.into_iter().map(|token| token.entry(stored_token::time(now))));
        }
        if !tidied.is_empty() {
            // Keys whose tokens have all ended. The list is the same where they stay.
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
            let tokens = read(&mut connection, &names).await?;
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

    async fn revoke(&self, id: &ApiKeyId) -> Result<Option<ApiKey>, ApiKeyStoreError> {
        self.change(|mut connection| async move {
            let names = self.names_of(&mut connection, id).await?;
            if names.is_empty() {
                return Ok(Decided::Nothing(None));
            }
            let key = match read(&mut connection, &names).await {
                Ok(tokens) => tokens.last().map(|token| token.key.clone()),
                // It ends all the same.
                Err(Failure::Corrupt(_)) => Some(unreadable(id)),
                Err(error) => return Err(error),
            };
            let mut change = pipe();
            change.cmd("DEL").arg(&names).ignore();
            change.cmd("HDEL").arg(&self.layout.index).arg(id.as_str()).ignore();
            Ok(Decided::Change(change, key))
        })
        .await
    }
}

/// The tokens with these names that have not ended.
async fn read(connection: &mut MultiplexedConnection, names: &[String]) -> Result<Vec<StoredToken>, Failure> {
    let mut tokens = Vec::new();
    for names in names.chunks(TOKENS_AT_A_TIME) {
        let mut question = pipe();
        for name in names {
            StoredToken::ask(&mut question, name);
        }
        let answers: Vec<Value> = question.query_async(connection).await?;
        for (name, answers) in names.iter().zip(answers.chunks_exact(StoredToken::QUESTIONS)) {
            tokens.extend(StoredToken::read(name, answers)??);
        }
    }
    Ok(tokens)
}

fn unreadable(id: &ApiKeyId) -> ApiKey {
    let label = ApiKeyLabel::parse("unreadable").expect("a label");
    ApiKey { id: id.clone(), label, scopes: Scopes::default() }
}
