//! The rows of tokens, with their keys.

use animal_store_app::{ApiKey, ApiKeyDigest, ApiKeyId, ApiKeyLabel, Scopes};
use diesel::{
    dsl::{exists, not},
    prelude::*,
    result::Error,
};

use super::error::KeyError;
use crate::{
    change::AccessError,
    schema::tables::{api_key_tokens, api_keys},
};

/// The columns of a key.
pub(super) type KeyRow = (String, String, String);

#[derive(Queryable)]
pub(super) struct TokenRow {
    key: KeyRow,
    digest: Vec<u8>,
    last_four: String,
    /// In milliseconds since 1970.
    pub(super) created_at: i64,
    /// In milliseconds since 1970.
    pub(super) expires_at: Option<i64>,
}

/// Reads the tokens that are valid at this time, ordered by key id and, for one key, by creation time.
pub(super) fn read_valid(connection: &mut SqliteConnection, now: i64) -> Result<Vec<TokenRow>, Error> {
    use api_key_tokens::{created_at, digest, expires_at, last_four};
    let valid = expires_at.is_null().or(expires_at.gt(now));
    let rows = api_key_tokens::table.inner_join(api_keys::table).filter(valid);
    let rows = rows.order((api_keys::id, created_at, digest));
    rows.select((api_keys::all_columns, digest, last_four, created_at, expires_at)).load(connection)
}

/// Deletes the tokens that have expired at this time, and the keys without tokens.
pub(super) fn delete_expired(connection: &mut SqliteConnection, now: i64) -> Result<(), Error> {
    diesel::delete(api_key_tokens::table.filter(api_key_tokens::expires_at.le(now))).execute(connection)?;
    let tokens = api_key_tokens::table.filter(api_key_tokens::api_key_id.eq(api_keys::id));
    diesel::delete(api_keys::table.filter(not(exists(tokens)))).execute(connection)?;
    Ok(())
}

impl TokenRow {
    /// The id of the key, which may be malformed.
    pub(super) fn id(&self) -> &str {
        &self.key.0
    }

    /// The digest, unless it is malformed: then no token has it.
    pub(super) fn digest(&self) -> Option<ApiKeyDigest> {
        self.digest.as_slice().try_into().ok().map(ApiKeyDigest::from_bytes)
    }

    pub(super) fn key(&self) -> Result<ApiKey, KeyError> {
        parse_key(&self.key)
    }

    /// The last four characters.
    pub(super) fn last_four(&self) -> Result<String, KeyError> {
        if self.last_four.chars().count() > 4 || self.last_four.contains(char::is_control) {
            return Err(corrupt(self.id(), "the last four characters are malformed"));
        }
        Ok(self.last_four.clone())
    }
}

/// Parses a key. Unknown scopes are left out.
pub(super) fn parse_key((id, label, scopes): &KeyRow) -> Result<ApiKey, KeyError> {
    Ok(ApiKey {
        id: ApiKeyId::parse(id).map_err(|_| corrupt(id, "the id is malformed"))?,
        label: ApiKeyLabel::parse(label).map_err(|_| corrupt(id, "the label is malformed"))?,
        scopes: parse_scopes(scopes),
    })
}

fn parse_scopes(scopes: &str) -> Scopes {
    scopes.split(',').filter_map(|scope| scope.parse().ok()).collect()
}

pub(super) fn corrupt(id: &str, problem: &str) -> KeyError {
    AccessError::Corrupt(format!("API key {id:?}: {problem}"))
}
