//! The rows of API keys and of their tokens.

use std::{sync::Arc, time::SystemTime};

use animal_store_adapter_kit::StoredKey;
use animal_store_app::{ApiKey, ApiKeyDigest, ApiKeyId, IssuedApiKey, IssuedToken};
use diesel::prelude::*;

use crate::{
    error::corrupt,
    tables::{api_key_state, api_key_tokens, api_keys},
    values::{from_milliseconds, milliseconds},
};

/// A key as the file has it, with its valid tokens, oldest first.
pub(super) struct KeyRows {
    pub(super) id: String,
    label: String,
    scopes: String,
    tokens: Vec<TokenRow>,
}

/// The columns of a token. Times are in milliseconds since 1970.
#[derive(Queryable)]
struct TokenRow {
    digest: Vec<u8>,
    last_four: String,
    created_at: i64,
    expires_at: Option<i64>,
}

/// Selects keys.
#[derive(Clone, Copy)]
pub(super) enum Select<'a> {
    /// The keys that have changed since this version.
    ChangedSince(i64),
    /// The key with this id.
    Id(&'a str),
    /// The key of the token with this digest.
    Digest(&'a [u8]),
}

pub(super) fn version(connection: &mut SqliteConnection) -> QueryResult<i64> {
    let version = api_key_state::table.select(api_key_state::version).first(connection).optional()?;
    version.ok_or_else(|| corrupt("table api_key_state has no row"))
}

/// Reads keys with the tokens that are valid at this time, in the order of their ids. Keys without tokens are included.
pub(super) fn read(
    connection: &mut SqliteConnection,
    select: Select<'_>,
    now: SystemTime,
) -> QueryResult<Vec<KeyRows>> {
    use api_key_tokens::{created_at, digest, expires_at, last_four};
    let keys = api_keys::table.left_join(api_key_tokens::table).order((api_keys::id, created_at, digest)).into_boxed();
    let keys = match select {
        Select::ChangedSince(version) => keys.filter(api_keys::version.gt(version)),
        Select::Id(id) => keys.filter(api_keys::id.eq(id)),
        Select::Digest(token) => keys.filter(digest.eq(token)),
    };
    let columns =
        ((api_keys::id, api_keys::label, api_keys::scopes), (digest, last_four, created_at, expires_at).nullable());
    let now = milliseconds(now);
    let mut read: Vec<KeyRows> = Vec::new();
    for row in keys.select(columns).load_iter::<((String, String, String), Option<TokenRow>), _>(connection)? {
        let ((id, label, scopes), token) = row?;
        let token = token.filter(|token| token.expires_at.is_none_or(|expires| expires > now));
        match read.last_mut() {
            Some(last) if last.id == id => last.tokens.extend(token),
            _ => read.push(KeyRows { id, label, scopes, tokens: token.into_iter().collect() }),
        }
    }
    Ok(read)
}

/// Writes a key with its tokens in place of what the file has of it. `None`: it does not exist.
pub(super) fn write(
    connection: &mut SqliteConnection,
    id: &ApiKeyId,
    key: Option<&IssuedApiKey>,
    version: i64,
) -> QueryResult<()> {
    use api_key_tokens::{api_key_id, created_at, digest, expires_at, last_four};
    diesel::delete(api_key_tokens::table.filter(api_key_id.eq(id.as_str()))).execute(connection)?;
    let Some(IssuedApiKey { key, tokens }) = key else {
        let row = diesel::update(api_keys::table.find(id.as_str()));
        return row.set(api_keys::version.eq(version)).execute(connection).map(drop);
    };
    let scopes = key.scopes.to_string();
    let content =
        (api_keys::label.eq(key.label.as_str()), api_keys::scopes.eq(&*scopes), api_keys::version.eq(version));
    let row = diesel::insert_into(api_keys::table).values((api_keys::id.eq(id.as_str()), content));
    row.on_conflict(api_keys::id).do_update().set(content).execute(connection)?;
    for token in tokens {
        let row = (
            digest.eq(&token.digest.0[..]),
            api_key_id.eq(id.as_str()),
            last_four.eq(&token.last_four),
            created_at.eq(milliseconds(token.created)),
            expires_at.eq(token.expires.map(milliseconds)),
        );
        diesel::insert_into(api_key_tokens::table).values(row).execute(connection)?;
    }
    Ok(())
}

impl KeyRows {
    pub(super) fn exists(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Returns the key, or the reason why it is not valid.
    pub(super) fn key(&self) -> Result<ApiKey, String> {
        let key = ApiKey::from_stored(&self.id, &self.label, &self.scopes);
        key.map_err(|problem| format!("API key {:?}: {problem}", self.id))
    }

    pub(super) fn issued(&self) -> QueryResult<IssuedApiKey> {
        let tokens = self.tokens.iter().map(|token| token.issued(&self.id)).collect::<QueryResult<_>>()?;
        Ok(IssuedApiKey { key: self.key().map_err(corrupt)?, tokens })
    }
}

impl TokenRow {
    /// The digest, unless it is malformed: then no token has it.
    fn digest(&self) -> Option<ApiKeyDigest> {
        self.digest.as_slice().try_into().ok().map(ApiKeyDigest)
    }

    fn issued(&self, id: &str) -> QueryResult<IssuedToken> {
        let digest = self.digest().ok_or("the digest of a token is malformed");
        let token = digest.and_then(|digest| {
            IssuedToken::from_stored(digest, self.last_four.clone(), self.created_at, self.expires_at)
        });
        token.map_err(|problem| corrupt(format!("API key {id:?}: {problem}")))
    }
}

impl From<KeyRows> for StoredKey {
    fn from(rows: KeyRows) -> Self {
        let token = |token: &TokenRow| Some((token.digest()?, token.expires_at.map(from_milliseconds)));
        Self {
            id: ApiKeyId::new(&rows.id),
            key: rows.key().map(Arc::new),
            tokens: rows.tokens.iter().filter_map(token).collect(),
        }
    }
}
