use std::time::{Duration, SystemTime};

use animal_store_app::{
    ApiKey, ApiKeyId, ApiKeyLabel, Scopes,
    ports::{AddedKey, ApiKeyStore, ApiKeyStoreError, NewToken, RecordedUses, RotatedKey, TokenEntry},
};
use async_trait::async_trait;
use diesel::{dsl::max, prelude::*};

use super::{
    error::{KeyError, Refusal, port_error},
    tokens::{KeyRow, TokenRow, delete_expired, parse_key, read_valid},
    use_rows,
};
use crate::{
    SqliteFile,
    change::{AccessError, change, run_blocking},
    schema::tables::{api_key_state, api_key_tokens, api_keys},
    time::{from_milliseconds, milliseconds, whole_milliseconds},
};

/// Adds, lists, rotates and revokes API keys in a file. Other processes may do so, and serve requests, at the same
/// time.
#[derive(Debug)]
pub struct SqliteApiKeyStore {
    file: SqliteFile,
}

impl SqliteApiKeyStore {
    /// Creates the store.
    pub const fn new(file: SqliteFile) -> Self {
        Self { file }
    }

    /// Adds a key with its first token if the file is new: no command or start has added, rotated or revoked an API key
    /// in it. Returns whether it was added. Of several starts at one moment, one adds its key.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`].
    pub async fn add_first(&self, key: ApiKey, token: NewToken) -> Result<bool, ApiKeyStoreError> {
        self.change(move |connection, now| {
            let version: i64 = api_key_state::table.select(api_key_state::version).first(connection)?;
            if version == 0 {
                insert_key(connection, &key)?;
                insert_new_token(connection, &key.id, &token, milliseconds(now), expiry(&token, now))?;
            }
            Ok(version == 0)
        })
        .await
    }

    /// Reads on a connection of its own.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteConnection, SystemTime) -> Result<T, KeyError> + Send + 'static,
    ) -> Result<T, ApiKeyStoreError> {
        let file = self.file.clone();
        let read = run_blocking(move || {
            let mut connection = file.connect()?;
            connection.transaction(|connection| work(connection, SystemTime::now()))
        });
        read.await.map_err(|error| port_error(error, &self.file))
    }

    /// Makes a change at the current time, which directories will see. Expired tokens are deleted before it.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut SqliteConnection, SystemTime) -> Result<T, KeyError> + Send + 'static,
    ) -> Result<T, ApiKeyStoreError> {
        let file = self.file.clone();
        let changed = run_blocking(move || {
            change(&file, &mut *file.connect()?, |connection| {
                let now = SystemTime::now();
                delete_expired(connection, milliseconds(now))?;
                let result = work(connection, now)?;
                let version = api_key_state::version.eq(api_key_state::version + 1);
                match diesel::update(api_key_state::table).set(version).execute(connection)? {
                    1 => Ok(result),
                    _ => Err(AccessError::Corrupt("table api_key_state has no row".to_owned())),
                }
            })
        });
        changed.await.map_err(|error| port_error(error, &self.file))
    }
}

/// Returns the key of a token, unless no key has it.
pub(super) fn owner(connection: &mut SqliteConnection, digest: &[u8]) -> Result<Option<ApiKey>, KeyError> {
    let token = api_key_tokens::table.find(digest).inner_join(api_keys::table).select(api_keys::all_columns);
    token.first::<KeyRow>(connection).optional()?.as_ref().map(parse_key).transpose()
}

pub(super) fn find_key(connection: &mut SqliteConnection, id: &ApiKeyId) -> Result<Option<KeyRow>, KeyError> {
    Ok(api_keys::table.find(id.as_str()).first(connection).optional()?)
}

pub(super) fn insert_key(connection: &mut SqliteConnection, key: &ApiKey) -> Result<(), KeyError> {
    let row = (
        api_keys::id.eq(key.id.as_str()),
        api_keys::label.eq(key.label.as_str()),
        api_keys::scopes.eq(key.scopes.to_string()),
    );
    diesel::insert_into(api_keys::table).values(row).execute(connection)?;
    Ok(())
}

/// Inserts a token. Times are in milliseconds since 1970.
pub(super) fn insert_token(
    connection: &mut SqliteConnection,
    id: &ApiKeyId,
    token: (&[u8], &str),
    created_at: i64,
    expires_at: Option<i64>,
) -> Result<(), KeyError> {
    let row = (
        api_key_tokens::digest.eq(token.0),
        api_key_tokens::api_key_id.eq(id.as_str()),
        api_key_tokens::last_four.eq(token.1),
        api_key_tokens::created_at.eq(created_at),
        api_key_tokens::expires_at.eq(expires_at),
    );
    diesel::insert_into(api_key_tokens::table).values(row).execute(connection)?;
    Ok(())
}

fn insert_new_token(
    connection: &mut SqliteConnection,
    id: &ApiKeyId,
    token: &NewToken,
    created_at: i64,
    expires_at: Option<i64>,
) -> Result<(), KeyError> {
    insert_token(connection, id, (token.digest.as_bytes(), &token.last_four), created_at, expires_at)
}

/// Returns when the lifetime of a new token ends, in milliseconds since 1970, rounded up.
fn expiry(token: &NewToken, now: SystemTime) -> Option<i64> {
    let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let rounding = Duration::from_nanos(999_999);
    token.lifetime.map(|lifetime| whole_milliseconds(since_1970.saturating_add(lifetime).saturating_add(rounding)))
}

#[async_trait]
impl ApiKeyStore for SqliteApiKeyStore {
    async fn add(&self, key: ApiKey, token: NewToken) -> Result<AddedKey, ApiKeyStoreError> {
        self.change(move |connection, now| {
            let digest = token.digest.as_bytes();
            if let Some(owner) = owner(connection, digest)? {
                return Ok(AddedKey::Existing(owner));
            }
            if find_key(connection, &key.id)?.is_some() {
                return Err(AccessError::Refused(Refusal::Taken("id")));
            }
            insert_key(connection, &key)?;
            insert_new_token(connection, &key.id, &token, milliseconds(now), expiry(&token, now))?;
            Ok(AddedKey::New)
        })
        .await
    }

    async fn list(&self) -> Result<Vec<TokenEntry>, ApiKeyStoreError> {
        self.read(|connection, now| read_valid(connection, milliseconds(now))?.iter().map(entry).collect()).await
    }

    async fn list_uses(&self) -> Result<RecordedUses, ApiKeyStoreError> {
        self.read(|connection, now| use_rows::read(connection, milliseconds(now))).await
    }

    async fn rotate(
        &self,
        id: &ApiKeyId,
        token: NewToken,
        grace: Duration,
    ) -> Result<Option<RotatedKey>, ApiKeyStoreError> {
        use api_key_tokens::{api_key_id, created_at, digest, expires_at};
        let id = id.clone();
        self.change(move |connection, now| {
            let Some(key) = find_key(connection, &id)? else { return Ok(None) };
            let key = parse_key(&key)?;
            let new_digest = &token.digest.as_bytes()[..];
            if owner(connection, new_digest)?.is_some() {
                return Err(AccessError::Refused(Refusal::Taken("token")));
            }
            let tokens = api_key_tokens::table.filter(api_key_id.eq(id.as_str()));
            let newest = tokens.order((created_at.desc(), digest.desc())).select((created_at, expires_at));
            let (newest_created, newest_expires): (i64, Option<i64>) = newest.first(connection)?;
            // The order of tokens must not depend on the clock.
            let created = milliseconds(now).max(newest_created.saturating_add(1));
            let expires = expiry(&token, now).or(newest_expires);
            let end = milliseconds(now.checked_add(grace).unwrap_or(from_milliseconds(i64::MAX)));
            let outlives = expires_at.is_null().or(expires_at.gt(end));
            diesel::update(tokens.filter(outlives)).set(expires_at.eq(end)).execute(connection)?;
            let old_tokens_end: Option<i64> = tokens.select(max(expires_at)).first(connection)?;
            insert_new_token(connection, &id, &token, created, expires)?;
            // Without grace the old tokens have expired now.
            delete_expired(connection, milliseconds(now))?;
            Ok(Some(RotatedKey { key, old_tokens_end: whole_second(old_tokens_end.unwrap_or(end)) }))
        })
        .await
    }

    async fn revoke(&self, id: &ApiKeyId) -> Result<Option<ApiKey>, ApiKeyStoreError> {
        let id = id.clone();
        self.change(move |connection, _| {
            let Some(key) = find_key(connection, &id)? else { return Ok(None) };
            diesel::delete(api_keys::table.find(id.as_str())).execute(connection)?;
            Ok(Some(parse_key(&key).unwrap_or_else(|_| unreadable_key(id))))
        })
        .await
    }
}

fn entry(row: &TokenRow) -> Result<TokenEntry, KeyError> {
    Ok(TokenEntry {
        key: row.key()?,
        last_four: row.last_four()?,
        created: whole_second(row.created_at),
        expires: row.expires_at.map(|expires| whole_second(expires.saturating_add(500))),
    })
}

/// Returns the whole second of a time in milliseconds since 1970.
pub(super) fn whole_second(milliseconds: i64) -> SystemTime {
    from_milliseconds(milliseconds.div_euclid(1000).saturating_mul(1000))
}

/// Stands for a key that is revoked although its row is not valid.
fn unreadable_key(id: ApiKeyId) -> ApiKey {
    ApiKey { id, label: ApiKeyLabel::parse("unreadable").expect("a valid label"), scopes: Scopes::default() }
}
