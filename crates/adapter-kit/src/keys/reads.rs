//! The rows of keys and of their tokens, as lists, changes and directories read them.

use std::sync::Arc;

use animal_store_app::{
    ApiKey, ApiKeyDigest, IssuedApiKey, IssuedToken, from_milliseconds, milliseconds,
    ports::{StoreFailure, StoreResult},
};

use super::{
    sql::{Row, Sql, Value, corrupt},
    statements,
};
use crate::{KeyCounts, KeyDelta, KeyState, StoredKey};

/// The columns of a key, whose content may be malformed.
#[derive(PartialEq, Eq)]
pub(super) struct KeyRow {
    pub(super) id: String,
    label: String,
    scopes: String,
}

impl KeyRow {
    /// Returns the key, if it is valid.
    pub(super) fn key(&self) -> StoreResult<ApiKey> {
        let key = ApiKey::from_stored(&self.id, &self.label, &self.scopes);
        key.map_err(|problem| self.corrupt(problem))
    }

    fn corrupt(&self, problem: &str) -> StoreFailure {
        corrupt(format!("API key {:?}: {problem}", self.id))
    }
}

/// Reads the first columns of a row.
pub(super) fn key_row(row: &mut Row) -> StoreResult<KeyRow> {
    Ok(KeyRow {
        id: row.next().text()?,
        label: row.next().text()?,
        scopes: row.next().text()?,
    })
}

/// Returns the keys that exist at this time, in the order of their ids.
pub(super) fn list(sql: &mut dyn Sql) -> StoreResult<Vec<IssuedApiKey>> {
    let now = sql.now()?;
    issued_keys(sql.rows(statements::SELECT_VALID, &[milliseconds(now).into()])?)
}

/// Returns the keys of rows with valid tokens, which are in the order of the ids.
pub(super) fn issued_keys(rows: Vec<Row>) -> StoreResult<Vec<IssuedApiKey>> {
    let mut keys: Vec<IssuedApiKey> = Vec::new();
    for mut row in rows {
        let stored = key_row(&mut row)?;
        let token = issued_token(&mut row, &stored)?;
        let key = stored.key()?;
        match keys.last_mut() {
            Some(last) if last.key.id == key.id => last.tokens.push(token),
            _ => keys.push(IssuedApiKey {
                key,
                tokens: vec![token],
            }),
        }
    }
    Ok(keys)
}

fn issued_token(row: &mut Row, key: &KeyRow) -> StoreResult<IssuedToken> {
    let digest = digest(&row.next().bytes()?);
    let digest = digest.ok_or_else(|| key.corrupt("the digest of a token is malformed"))?;
    let last_four = row.next().text()?;
    let created = row.next().integer()?;
    let expires = row.next().unless_null().map(Value::integer).transpose()?;
    IssuedToken::from_stored(digest, last_four, created, expires)
        .map_err(|problem| key.corrupt(problem))
}

fn digest(bytes: &[u8]) -> Option<ApiKeyDigest> {
    bytes.try_into().ok().map(ApiKeyDigest)
}

/// Returns what has changed since the state that is known, or `None`. Without a known state, and if the store has
/// another history, it is all keys. The transaction sees one state.
///
/// # Errors
/// See [`StoreFailure`]. [`Corrupt`](StoreFailure::Corrupt) also means that the store lacks rows of its state.
pub fn read_delta(sql: &mut dyn Sql, known: Option<&KeyState>) -> StoreResult<Option<KeyDelta>> {
    let state = key_state(&mut state_row(sql, statements::SELECT_STATE)?)?;
    if known == Some(&state) {
        return Ok(None);
    }
    let mut since = None;
    if let Some(known) = known {
        let values = [known.version.into(), known.mark.as_slice().into()];
        let mut rows = sql.rows(statements::COUNT_MARKS, &values)?;
        let marks = rows.pop().map_or(Ok(0), |mut row| row.next().integer())?;
        since = state.continues(known, marks).then_some(known.version);
    }
    let from = since.unwrap_or(i64::MIN);
    let found = found_keys(sql.rows(statements::SELECT_CHANGED, &[from.into()])?)?;
    if since.is_none() && found.counts != state.counts {
        return Err(corrupt(format!(
            "the store has {}, and its state says {}: a restore is not complete, or rows were changed by hand",
            found.counts, state.counts
        )));
    }
    Ok(Some(KeyDelta {
        state,
        keys: found.keys,
        is_complete: since.is_none(),
    }))
}

/// Runs a statement on the only row of the state, and returns what it selects.
pub(super) fn state_row(sql: &mut dyn Sql, statement: &str) -> StoreResult<Row> {
    let mut rows = sql.rows(statement, &[])?;
    rows.pop()
        .ok_or_else(|| corrupt("table api_key_state has no row"))
}

/// Returns the state of this row.
///
/// # Errors
/// See [`StoreFailure`].
pub fn key_state(row: &mut Row) -> StoreResult<KeyState> {
    Ok(KeyState {
        version: row.next().integer()?,
        mark: row.next().bytes()?,
        counts: KeyCounts {
            keys: row.next().integer()?,
            tokens: row.next().integer()?,
        },
    })
}

/// The keys of some rows.
struct FoundKeys {
    keys: Vec<StoredKey>,
    counts: KeyCounts,
}

/// Returns the keys of rows, which are in the order of the ids. Keys without tokens are included.
fn found_keys(rows: Vec<Row>) -> StoreResult<FoundKeys> {
    let mut keys: Vec<StoredKey> = Vec::new();
    let mut counts = KeyCounts::default();
    for mut row in rows {
        let stored = key_row(&mut row)?;
        let token = row.next().unless_null();
        let expires = row.next().unless_null().map(Value::integer).transpose()?;
        if keys.last().is_none_or(|last| last.id != stored.id) {
            counts.keys += 1;
            keys.push(StoredKey {
                key: stored
                    .key()
                    .map(Arc::new)
                    .map_err(|failure| failure.reason()),
                id: stored.id,
                tokens: Vec::new(),
            });
        }
        let (Some(token), Some(key)) = (token, keys.last_mut()) else {
            continue;
        };
        counts.tokens += 1;
        // No token has a malformed digest.
        if let Some(digest) = digest(&token.bytes()?) {
            key.tokens.push((digest, expires.map(from_milliseconds)));
        }
    }
    Ok(FoundKeys { keys, counts })
}
