use std::{collections::HashSet, time::Duration};

use animal_store_app::{
    ApiKey, ApiKeyId,
    ports::{AddedKey, ApiKeyStore, ApiKeyStoreError, NewToken, RecordedUses, RotatedKey, TokenEntry},
};
use async_trait::async_trait;
use redis::pipe;

use super::{
    change::retry,
    error::StoreError,
    stored_token::{StoredToken, expire_at, nearest_second, newest_key, parse_time, read_all, read_valid, set_token},
};
use crate::{
    connection::{Connection, RedisEndpoint},
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

impl RedisApiKeyStore {
    /// Creates a store. Names in Redis begin with `prefix`. The timeout bounds opening a connection, and each response.
    pub fn new(endpoint: RedisEndpoint, prefix: &str, timeout: Duration) -> Self {
        Self { endpoint, layout: Layout::new(prefix), timeout }
    }

    pub(super) async fn connect(&self) -> Result<Connection, StoreError> {
        Ok(self.endpoint.connect(self.timeout, |_| ()).await?)
    }

    pub(super) fn port_error(&self, error: StoreError) -> ApiKeyStoreError {
        error.into_port_error(&self.endpoint, &self.layout)
    }

    /// Lists the valid tokens. With `clean`, removes the ids of expired keys from the index.
    async fn list_tokens(&self, clean: bool) -> Result<Vec<StoredToken>, StoreError> {
        let listed = self.transact(|mut connection| async move {
            let (index, tokens) = self.read_index(&mut connection).await?;
            let valid: HashSet<&str> = tokens.iter().map(|token| token.key.id.as_str()).collect();
            let expired: Vec<&String> = index.keys().filter(|id| clean && !valid.contains(id.as_str())).collect();
            let mut change = pipe();
            change.cmd("HDEL").arg(&self.layout.index).arg(&expired).ignore();
            Ok(((!expired.is_empty()).then_some(change), tokens))
        });
        listed.await
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
        let tokens = match self.list_tokens(true).await {
            // A full Redis, or one that does not permit `HDEL`, keeps the ids of expired keys.
            Err(StoreError::Write(_)) => self.list_tokens(false).await,
            listed => listed,
        };
        let tokens = tokens.map_err(|error| self.port_error(error))?;
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
            let Some(entry) = self.read_entry(&mut connection, id).await? else { return Ok((None, None)) };
            let tokens = read_valid(&connection, &entry.tokens).await?;
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

    /// Not a transaction, which a full Redis would refuse.
    async fn revoke(&self, id: &ApiKeyId) -> Result<Option<ApiKey>, ApiKeyStoreError> {
        let revoked = retry(|| async {
            let mut connection = self.connect().await?;
            let Some(entry) = self.read_entry(&mut connection, id).await? else { return Ok(Some(None)) };
            let found = read_all(&connection, &entry.tokens).await?;
            let deleted = self.delete_key(&mut connection, &entry).await?;
            Ok(deleted.then(|| newest_key(&found, id)))
        });
        revoked.await.map_err(|error| self.port_error(error))
    }
}
