use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use animal_store_app::{
    ApiKey, ApiKeyId,
    ports::{AddedKey, ApiKeyStore, ApiKeyStoreError, NewToken, RecordedUses, RotatedKey, TokenEntry},
};
use async_trait::async_trait;
use redis::{Pipeline, Value, cmd, pipe};
use tokio::time::sleep;

use super::{
    error::StoreError,
    stored_token::{
        IndexedToken, StoredToken, expire_at, nearest_second, newest_key, parse_time, read_all, read_valid, set_token,
    },
};
use crate::{
    connection::{Connection, RedisEndpoint, backoff},
    layout::Layout,
    token_hash::{KEY_FIELDS, parse_key},
    use_record,
};

/// Adds, lists, rotates and revokes API keys in Redis.
#[derive(Debug)]
pub struct RedisApiKeyStore {
    endpoint: RedisEndpoint,
    pub(super) layout: Layout,
    timeout: Duration,
}

/// Maximum number of attempts at a change that other changes interrupt.
const MAX_ATTEMPTS: usize = 40;
const MIN_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// The commands that a transaction applies, if any, and its result.
pub(super) type Decision<T> = Result<(Option<Pipeline>, T), StoreError>;

impl RedisApiKeyStore {
    /// Creates a store. Names in Redis begin with `prefix`. The timeout bounds opening a connection, and each response.
    pub fn new(endpoint: RedisEndpoint, prefix: &str, timeout: Duration) -> Self {
        Self { endpoint, layout: Layout::new(prefix), timeout }
    }

    async fn connect(&self) -> Result<Connection, StoreError> {
        Ok(self.endpoint.connect(self.timeout, |_| ()).await?)
    }

    /// Returns the index, and the valid tokens in its order: by key id and, for one key, oldest first.
    pub(super) async fn read_index(
        &self,
        connection: &mut Connection,
    ) -> Result<(BTreeMap<String, String>, Vec<StoredToken>), StoreError> {
        let index: BTreeMap<String, String> = cmd("HGETALL").arg(&self.layout.index).query_async(connection).await?;
        let tokens: Vec<_> = index.iter().flat_map(|(id, digests)| self.parse_digests(id, digests)).collect();
        let tokens = read_valid(connection, &tokens).await?;
        Ok((index, tokens))
    }

    pub(super) fn port_error(&self, error: StoreError) -> ApiKeyStoreError {
        error.into_port_error(&self.endpoint, &self.layout)
    }

    /// Opens a connection that watches the index.
    pub(super) async fn watch(&self) -> Result<Connection, StoreError> {
        let mut connection = self.connect().await?;
        // Without the permission for MULTI, Redis would apply each command of a transaction by itself. The driver does
        // not detect that, so it is tested first.
        let mut commands = pipe();
        commands.cmd("MULTI").cmd("EXEC").cmd("WATCH").arg(&self.layout.index);
        commands.exec_async(&mut connection).await?;
        Ok(connection)
    }

    /// Runs a transaction: `decide` reads, and decides what to write. Retries if the index was changed meanwhile, even
    /// if there is nothing to write, so that all reads show the same state.
    pub(super) async fn transact<T, F>(&self, decide: impl Fn(Connection) -> F + Sync) -> Result<T, StoreError>
    where
        T: Send,
        F: Future<Output = Decision<T>> + Send,
    {
        for pause in backoff(MIN_PAUSE, MAX_PAUSE).take(MAX_ATTEMPTS) {
            let mut connection = self.watch().await?;
            let (change, result) = decide(connection.clone()).await?;
            let executed = match change {
                Some(mut change) => change.atomic().query_async(&mut connection).await.map_err(StoreError::Write)?,
                // Even a full Redis accepts a transaction without commands.
                None => pipe().cmd("MULTI").cmd("EXEC").query_async::<(Value, Value)>(&mut connection).await?.1,
            };
            if executed != Value::Nil {
                return Ok(result);
            }
            sleep(pause).await;
        }
        Err(StoreError::TooManyChanges)
    }

    /// Returns the tokens that the index lists for a key, oldest first. They may have expired.
    async fn tokens_of(&self, connection: &mut Connection, id: &ApiKeyId) -> Result<Vec<IndexedToken>, StoreError> {
        let digests: Option<String> =
            cmd("HGET").arg(&self.layout.index).arg(id.as_str()).query_async(connection).await?;
        Ok(self.parse_digests(id.as_str(), &digests.unwrap_or_default()))
    }

    pub(super) fn parse_digests(&self, id: &str, digests: &str) -> Vec<IndexedToken> {
        let token = |digest| IndexedToken { id: id.to_owned(), name: format!("{}{digest}", self.layout.tokens) };
        digests.split_whitespace().map(token).collect()
    }

    /// Adds the command that lists these names for a key, oldest first.
    pub(super) fn set_tokens(&self, change: &mut Pipeline, id: &ApiKeyId, names: &[String]) {
        let digests: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix(&self.layout.tokens)).collect();
        change.cmd("HSET").arg(&self.layout.index).arg(id.as_str()).arg(digests.join(" ")).ignore();
    }

    /// Deletes the ids of expired keys from the index. If that fails, the next call does it.
    async fn delete_ids(&self, connection: &mut Connection, ids: &[&str]) {
        let _ = cmd("HDEL").arg(&self.layout.index).arg(ids).exec_async(connection).await;
    }

    /// Deletes the tokens of a key until none is left. Sets `revoked` once some have been deleted.
    async fn delete_tokens(&self, id: &ApiKeyId, revoked: &mut Option<ApiKey>) -> Result<(), StoreError> {
        let mut connection = self.connect().await?;
        let mut tokens = self.tokens_of(&mut connection, id).await?;
        for _ in 0..MAX_ATTEMPTS {
            let found = read_all(&connection, &tokens).await?;
            if !found.is_empty() {
                let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
                cmd("DEL").arg(names).exec_async(&mut connection).await.map_err(StoreError::Write)?;
                revoked.get_or_insert_with(|| newest_key(&found, id));
            }
            let remaining = self.tokens_of(&mut connection, id).await?;
            if remaining == tokens {
                self.delete_ids(&mut connection, &[id.as_str()]).await;
                return Ok(());
            }
            tokens = remaining;
        }
        Err(StoreError::TooManyChanges)
    }
}

#[async_trait]
impl ApiKeyStore for RedisApiKeyStore {
    async fn add(&self, key: ApiKey, token: NewToken) -> Result<AddedKey, ApiKeyStoreError> {
        let name = &self.layout.token(&token.digest);
        let (key, token) = (&key, &token);
        let added = self.transact(|mut connection| async move {
            let mut query = pipe();
            query.cmd("HMGET").arg(name).arg(&KEY_FIELDS);
            query.cmd("HEXISTS").arg(&self.layout.index).arg(key.id.as_str()).cmd("TIME");
            let (fields, id_taken, now) = query.query_async(&mut connection).await?;
            if let Some(owner) = parse_key(fields)? {
                return Ok((None, AddedKey::Existing(owner)));
            }
            if id_taken {
                return Err(StoreError::taken("id"));
            }
            let now = parse_time(now);
            let expires = token.lifetime.map(|lifetime| now.saturating_add(lifetime));
            let mut change = pipe();
            set_token(&mut change, name, key, &token.last_four, now, expires);
            self.set_tokens(&mut change, &key.id, std::slice::from_ref(name));
            Ok((Some(change), AddedKey::New))
        });
        added.await.map_err(|error| self.port_error(error))
    }

    async fn list(&self) -> Result<Vec<TokenEntry>, ApiKeyStoreError> {
        let listed = self.transact(|mut connection| async move { Ok((None, self.read_index(&mut connection).await?)) });
        let (index, tokens) = listed.await.map_err(|error| self.port_error(error))?;
        let valid: HashSet<&str> = tokens.iter().map(|token| token.key.id.as_str()).collect();
        let expired: Vec<&str> = index.keys().map(String::as_str).filter(|id| !valid.contains(id)).collect();
        if !expired.is_empty()
            && let Ok(mut connection) = self.connect().await
        {
            self.delete_ids(&mut connection, &expired).await;
        }
        Ok(tokens.into_iter().map(StoredToken::into_entry).collect())
    }

    async fn list_uses(&self) -> Result<RecordedUses, ApiKeyStoreError> {
        let read = async {
            let mut connection = self.connect().await?;
            use_record::read(&mut connection, &self.layout).await.map_err(StoreError::Read)
        };
        read.await.map_err(|error| self.port_error(error))
    }

    async fn rotate(
        &self,
        id: &ApiKeyId,
        token: NewToken,
        grace: Duration,
    ) -> Result<Option<RotatedKey>, ApiKeyStoreError> {
        let name = &self.layout.token(&token.digest);
        let token = &token;
        let rotated = self.transact(|mut connection| async move {
            let indexed = self.tokens_of(&mut connection, id).await?;
            if indexed.is_empty() {
                return Ok((None, None));
            }
            // A revocation deletes the tokens before it changes the index.
            let watched: Vec<&str> = indexed.iter().map(|indexed| indexed.name.as_str()).collect();
            cmd("WATCH").arg(watched).exec_async(&mut connection).await?;
            let tokens = read_valid(&connection, &indexed).await?;
            let Some(newest) = tokens.last() else { return Ok((None, None)) };
            let mut query = pipe();
            query.cmd("EXISTS").arg(name).cmd("TIME");
            let (token_taken, now) = query.query_async(&mut connection).await?;
            if token_taken {
                return Err(StoreError::taken("token"));
            }
            let now = parse_time(now);
            let expires = token.lifetime.map(|lifetime| now.saturating_add(lifetime)).or(newest.expires);
            let mut change = pipe();
            set_token(&mut change, name, &newest.key, &token.last_four, now, expires);
            let end_of_grace = now.saturating_add(grace);
            let mut last_end = Duration::ZERO;
            for old in &tokens {
                let end = old.expires.unwrap_or(Duration::MAX).min(end_of_grace);
                if old.expires != Some(end) {
                    expire_at(&mut change, &old.name, end);
                }
                last_end = last_end.max(end);
            }
            let rotated = RotatedKey { key: newest.key.clone(), old_tokens_end: nearest_second(last_end) };
            let names: Vec<_> = tokens.into_iter().map(|token| token.name).chain([name.clone()]).collect();
            self.set_tokens(&mut change, id, &names);
            Ok((Some(change), Some(rotated)))
        });
        rotated.await.map_err(|error| self.port_error(error))
    }

    /// Not a transaction: a full Redis refuses transactions, but executes `DEL`. A concurrent rotation watches the
    /// tokens that it read, and so fails; a later one finds none.
    async fn revoke(&self, id: &ApiKeyId) -> Result<Option<ApiKey>, ApiKeyStoreError> {
        let mut revoked = None;
        match self.delete_tokens(id, &mut revoked).await {
            Ok(()) => Ok(revoked),
            // Some tokens were deleted, others may not have been.
            Err(error) if revoked.is_some() => {
                Err(ApiKeyStoreError::OutcomeUnknown(error.describe(&self.endpoint, &self.layout).into()))
            }
            Err(error) => Err(self.port_error(error)),
        }
    }
}
