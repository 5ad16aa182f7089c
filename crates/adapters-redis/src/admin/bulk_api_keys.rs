use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiKeyId, ApiKeyLabel, Scopes, missing_tokens,
    ports::{ApiKeyRecord, ApiKeySource, ApiKeyStoreError, ApiKeyTarget, ImportedApiKeys},
};
use async_trait::async_trait;
use redis::{cmd, pipe};

use super::{
    change::Decision,
    error::StoreError,
    store::RedisApiKeyStore,
    stored_token::{expiries, parse_time, set_token},
};
use crate::{connection::Connection, time::LAST_SECOND};

#[async_trait]
impl ApiKeySource for RedisApiKeyStore {
    async fn export(&self) -> Result<Vec<ApiKeyRecord>, ApiKeyStoreError> {
        let exported = self.transact(|connection| async move { Ok((None, self.records(connection).await?)) });
        exported.await.map_err(|error| self.port_error(error))
    }
}

#[async_trait]
impl ApiKeyTarget for RedisApiKeyStore {
    /// Queues the commands of an import without `EXEC`: Redis checks the permissions and its memory when a command is
    /// queued. The end of the connection discards them; `DISCARD` would need a permission of its own.
    async fn check_writable(&self) -> Result<(), ApiKeyStoreError> {
        let checked = async {
            let mut connection = self.watch().await?;
            let (change, _) = self.add_missing(connection.clone(), &[sample()]).await?;
            cmd("MULTI").exec_async(&mut connection).await?;
            Ok(change.unwrap_or_default().exec_async(&mut connection).await?)
        };
        checked.await.map_err(|error| self.port_error(error))
    }

    async fn import(&self, records: Vec<ApiKeyRecord>) -> Result<ImportedApiKeys, ApiKeyStoreError> {
        let imported = self.transact(|connection| self.add_missing(connection, &records));
        imported.await.map_err(|error| self.port_error(error))
    }
}

impl RedisApiKeyStore {
    async fn records(&self, mut connection: Connection) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let (_, tokens) = self.read_index(&mut connection).await?;
        let expiries = expiries(&mut connection, &tokens).await?;
        let records = tokens.into_iter().zip(expiries).filter_map(|(token, expires)| {
            let digest = self.layout.digest(token.name.as_bytes())?;
            let created = UNIX_EPOCH + Duration::from_secs(token.created);
            Some(ApiKeyRecord { key: token.key, digest, last_four: token.last_four, created, expires: expires? })
        });
        Ok(records.collect())
    }

    async fn add_missing(&self, mut connection: Connection, given: &[ApiKeyRecord]) -> Decision<ImportedApiKeys> {
        let existing = self.records(connection.clone()).await?;
        let now = UNIX_EPOCH + parse_time(cmd("TIME").query_async(&mut connection).await?);
        let (missing, imported) = missing_tokens(&existing, given, now)?;
        if missing.is_empty() {
            return Ok((None, imported));
        }
        let names: Vec<_> = missing.iter().map(|record| self.layout.token(&record.digest)).collect();
        // Of a token that is not in the index, Redis may still have a hash.
        if cmd("EXISTS").arg(&names).query_async::<usize>(&mut connection).await? > 0 {
            return Err(StoreError::taken("token"));
        }
        let mut change = pipe();
        for (name, record) in names.iter().zip(&missing) {
            let (created, expires) = (since_1970(record.created), record.expires.map(since_1970));
            set_token(&mut change, name, &record.key, &record.last_four, created, expires);
        }
        let mut all: Vec<_> = existing.iter().chain(&missing).collect();
        all.sort_by(|a, b| (&a.key.id, a.created).cmp(&(&b.key.id, b.created)));
        for tokens in all.chunk_by(|a, b| a.key.id == b.key.id) {
            let names: Vec<_> = tokens.iter().map(|token| self.layout.token(&token.digest)).collect();
            self.set_tokens(&mut change, &tokens[0].key.id, &names);
        }
        Ok((Some(change), imported))
    }
}

/// A token that every import would add. No key has an empty id.
fn sample() -> ApiKeyRecord {
    let (id, label) = (ApiKeyId::new(""), ApiKeyLabel::parse("check").expect("a valid label"));
    let key = ApiKey { id, label, scopes: Scopes::default() };
    let (digest, expires) = (ApiKeyDigest::from_bytes([0; 32]), Some(UNIX_EPOCH + LAST_SECOND));
    ApiKeyRecord { key, digest, last_four: String::new(), created: UNIX_EPOCH, expires }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}
