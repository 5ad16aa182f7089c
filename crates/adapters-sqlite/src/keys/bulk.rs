//! All API keys at once, to move them to another store.

use std::time::SystemTime;

use animal_store_app::{
    ApiKeyId,
    ports::{ApiKeyRecord, ApiKeyStoreError, BulkApiKeys},
};
use async_trait::async_trait;
use diesel::SqliteConnection;

use super::{
    error::KeyError,
    store::{SqliteApiKeyStore, find_key, insert_key, insert_token, owner},
    tokens::{TokenRow, corrupt, parse_key, read_valid},
};
use crate::{
    change::AccessError,
    time::{from_milliseconds, milliseconds},
};

#[async_trait]
impl BulkApiKeys for SqliteApiKeyStore {
    async fn export(&self) -> Result<Vec<ApiKeyRecord>, ApiKeyStoreError> {
        self.read(|connection, now| read_valid(connection, milliseconds(now))?.iter().map(record).collect()).await
    }

    async fn import(&self, records: Vec<ApiKeyRecord>) -> Result<usize, ApiKeyStoreError> {
        self.change(move |connection, now| import(connection, &records, now)).await
    }
}

fn record(row: &TokenRow) -> Result<ApiKeyRecord, KeyError> {
    let created = row.created_at.div_euclid(1000).saturating_mul(1000);
    Ok(ApiKeyRecord {
        key: row.key()?,
        digest: row.digest().ok_or_else(|| corrupt(row.id(), "the digest of a token is malformed"))?,
        last_four: row.last_four()?,
        created: from_milliseconds(created),
        expires: row.expires_at.map(from_milliseconds),
    })
}

fn import(connection: &mut SqliteConnection, records: &[ApiKeyRecord], now: SystemTime) -> Result<usize, KeyError> {
    let mut added = 0;
    let mut last: Option<(&ApiKeyId, i64)> = None;
    for record in records.iter().filter(|record| record.expires.is_none_or(|expires| expires > now)) {
        // Tokens of one key that were created in one second keep their order.
        let earlier = last.filter(|(id, _)| *id == &record.key.id);
        let created = milliseconds(record.created).max(earlier.map_or(0, |(_, created)| created + 1));
        last = Some((&record.key.id, created));
        if add(connection, record, created)? {
            added += 1;
        }
    }
    Ok(added)
}

/// Returns whether the token was added.
fn add(connection: &mut SqliteConnection, record: &ApiKeyRecord, created: i64) -> Result<bool, KeyError> {
    let ApiKeyRecord { key, digest, .. } = record;
    match find_key(connection, &key.id)? {
        None => insert_key(connection, key)?,
        Some(stored) if parse_key(&stored)? == *key => {}
        Some(_) => return Err(AccessError::Refused("id")),
    }
    match owner(connection, digest.as_bytes())? {
        Some(owner) if owner.id == key.id => return Ok(false),
        Some(_) => return Err(AccessError::Refused("token")),
        None => {}
    }
    let expires = record.expires.map(milliseconds);
    insert_token(connection, &key.id, (digest.as_bytes(), &record.last_four), created, expires)?;
    Ok(true)
}
