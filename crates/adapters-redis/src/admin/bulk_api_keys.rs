use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_app::{
    ApiKeyDigest, ApiKeyId,
    ports::{ApiKeyRecord, ApiKeyStoreError, BulkApiKeys},
};
use async_trait::async_trait;
use redis::{Pipeline, cmd, pipe};

use super::{
    error::StoreError,
    store::RedisApiKeyStore,
    stored_token::{StoredToken, parse_time, set_token},
};
use crate::connection::Connection;

/// Number of tokens whose expiry is read by one message.
const TOKENS_PER_MESSAGE: usize = 500;

/// The tokens to be added, by key.
type NewTokens<'a> = BTreeMap<&'a ApiKeyId, Vec<&'a ApiKeyRecord>>;

#[async_trait]
impl BulkApiKeys for RedisApiKeyStore {
    async fn export(&self) -> Result<Vec<ApiKeyRecord>, ApiKeyStoreError> {
        let exported = self.transact(|mut connection| async move {
            let (_, tokens) = self.read_index(&mut connection).await?;
            let expiries = expiries(&mut connection, &tokens).await?;
            let records = tokens.into_iter().zip(expiries).filter_map(|(token, expiry)| self.record(token, expiry));
            Ok((None, records.collect()))
        });
        exported.await.map_err(|error| self.port_error(error))
    }

    async fn import(&self, records: Vec<ApiKeyRecord>) -> Result<usize, ApiKeyStoreError> {
        let records = &records;
        let imported = self.transact(|mut connection| async move {
            let (_, existing) = self.read_index(&mut connection).await?;
            let now = parse_time(cmd("TIME").query_async(&mut connection).await?);
            let new = self.new_tokens(records, &existing, now)?;
            let names: Vec<_> = new.values().flatten().map(|record| self.layout.token(&record.digest)).collect();
            if names.is_empty() {
                return Ok((None, 0));
            }
            // Of a token that is not in the index, Redis may still have a hash.
            if cmd("EXISTS").arg(&names).query_async::<usize>(&mut connection).await? > 0 {
                return Err(StoreError::Conflict("token"));
            }
            let mut change = pipe();
            for (id, records) in &new {
                self.set_key(&mut change, id, &existing, records);
            }
            Ok((Some(change), names.len()))
        });
        imported.await.map_err(|error| self.port_error(error))
    }
}

impl RedisApiKeyStore {
    /// Returns the record of a token, or `None` if it has expired. `expiry` is the response to `PEXPIRETIME`.
    fn record(&self, token: StoredToken, expiry: i64) -> Option<ApiKeyRecord> {
        let expires = match u64::try_from(expiry) {
            Ok(milliseconds) => Some(UNIX_EPOCH + Duration::from_millis(milliseconds)),
            Err(_) if expiry == -1 => None,
            Err(_) => return None,
        };
        let digest = self.digest(&token)?;
        let created = UNIX_EPOCH + Duration::from_secs(token.created);
        Some(ApiKeyRecord { key: token.key, digest, last_four: token.last_four, created, expires })
    }

    fn digest(&self, token: &StoredToken) -> Option<ApiKeyDigest> {
        self.layout.digest(token.name.as_bytes())
    }

    /// Returns the records that have not expired and that the store does not have.
    fn new_tokens<'a>(
        &self,
        records: &'a [ApiKeyRecord],
        existing: &'a [StoredToken],
        now: Duration,
    ) -> Result<NewTokens<'a>, StoreError> {
        let mut keys: HashMap<_, _> = existing.iter().map(|token| (&token.key.id, &token.key)).collect();
        let mut owners: HashMap<_, _> =
            existing.iter().filter_map(|token| Some((self.digest(token)?, &token.key))).collect();
        let mut new = NewTokens::new();
        for record in records.iter().filter(|record| record.expires.is_none_or(|expires| since_1970(expires) > now)) {
            let key = &record.key;
            let owner = owners.insert(record.digest, key);
            if owner.is_some_and(|owner| owner != key) {
                return Err(StoreError::Conflict("token"));
            }
            if keys.insert(&key.id, key).is_some_and(|other| other != key) {
                return Err(StoreError::Conflict("id"));
            }
            if owner.is_none() {
                new.entry(&key.id).or_default().push(record);
            }
        }
        Ok(new)
    }

    /// Adds the commands that store new tokens of a key. The index lists all of its tokens, oldest first.
    fn set_key(&self, change: &mut Pipeline, id: &ApiKeyId, existing: &[StoredToken], new: &[&ApiKeyRecord]) {
        let existing = existing.iter().filter(|token| token.key.id == *id);
        let mut tokens: Vec<_> = existing.map(|token| (token.created, token.name.clone())).collect();
        for record in new {
            let (name, created) = (self.layout.token(&record.digest), since_1970(record.created));
            set_token(change, &name, &record.key, &record.last_four, created, record.expires.map(since_1970));
            tokens.push((created.as_secs(), name));
        }
        tokens.sort_by_key(|(created, _)| *created);
        self.set_tokens(change, id, &tokens.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>());
    }
}

/// Returns the responses to `PEXPIRETIME`.
async fn expiries(connection: &mut Connection, tokens: &[StoredToken]) -> Result<Vec<i64>, StoreError> {
    let mut expiries = Vec::with_capacity(tokens.len());
    for tokens in tokens.chunks(TOKENS_PER_MESSAGE) {
        let mut query = pipe();
        for token in tokens {
            query.cmd("PEXPIRETIME").arg(&token.name);
        }
        expiries.extend(query.query_async::<Vec<i64>>(connection).await?);
    }
    Ok(expiries)
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}
