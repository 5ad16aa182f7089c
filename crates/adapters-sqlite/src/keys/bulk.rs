//! All API keys at once, to copy them from or to another store.

use std::time::SystemTime;

use animal_store_app::{
    ApiKeyId, missing_tokens,
    ports::{ApiKeyRecord, ApiKeySource, ApiKeyStoreError, ApiKeyTarget, ImportedApiKeys},
};
use async_trait::async_trait;
use diesel::SqliteConnection;

use super::{
    error::{KeyError, Refusal},
    store::{SqliteApiKeyStore, find_key, insert_key, insert_token, whole_second},
    tokens::{TokenRow, corrupt, read_valid},
};
use crate::{
    change::AccessError,
    time::{from_milliseconds, milliseconds},
};

#[async_trait]
impl ApiKeySource for SqliteApiKeyStore {
    async fn export(&self) -> Result<Vec<ApiKeyRecord>, ApiKeyStoreError> {
        self.read(records).await
    }
}

#[async_trait]
impl ApiKeyTarget for SqliteApiKeyStore {
    async fn check_writable(&self) -> Result<(), ApiKeyStoreError> {
        // The file was opened to be written.
        Ok(())
    }

    async fn import(&self, given: Vec<ApiKeyRecord>) -> Result<ImportedApiKeys, ApiKeyStoreError> {
        self.change(move |connection, now| {
            let refused = |conflict| AccessError::Refused(Refusal::Import(conflict));
            let (missing, imported) = missing_tokens(&records(connection, now)?, &given, now).map_err(refused)?;
            insert(connection, &missing)?;
            Ok(imported)
        })
        .await
    }
}

/// Returns the tokens that are valid at this time.
pub(crate) fn records(connection: &mut SqliteConnection, now: SystemTime) -> Result<Vec<ApiKeyRecord>, KeyError> {
    read_valid(connection, milliseconds(now))?.iter().map(record).collect()
}

fn record(row: &TokenRow) -> Result<ApiKeyRecord, KeyError> {
    Ok(ApiKeyRecord {
        key: row.key()?,
        digest: row.digest().ok_or_else(|| corrupt(row.id(), "the digest of a token is malformed"))?,
        last_four: row.last_four()?,
        created: whole_second(row.created_at),
        expires: row.expires_at.map(from_milliseconds),
    })
}

fn insert(connection: &mut SqliteConnection, records: &[ApiKeyRecord]) -> Result<(), KeyError> {
    let mut last: Option<(&ApiKeyId, i64)> = None;
    for ApiKeyRecord { key, digest, last_four, created, expires } in records {
        if find_key(connection, &key.id)?.is_none() {
            insert_key(connection, key)?;
        }
        // Tokens of one key that were created in one second keep their order.
        let earlier = last.filter(|(id, _)| *id == &key.id);
        let created = milliseconds(*created).max(earlier.map_or(0, |(_, created)| created + 1));
        last = Some((&key.id, created));
        insert_token(connection, &key.id, (digest.as_bytes(), last_four), created, expires.map(milliseconds))?;
    }
    Ok(())
}
