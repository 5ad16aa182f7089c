//! The rows of keys and of their tokens, as lists, changes and directories read them.

use std::sync::Arc;

use animal_store_app::{
    ApiKey, ApiKeyDigest, IssuedApiKey, IssuedToken, from_milliseconds, milliseconds,
    ports::{StoreFailure, StoreResult},
};

use super::{
    sql::{Row, Sql, corrupt},
    statements,
};
use crate::{KeyCounts, KeyDelta, KeyState, StoredKey, StoredToken};

/// The columns of a key, whose content may be malformed.
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
        id: row.text()?,
        label: row.text()?,
        scopes: row.text()?,
    })
}

/// Returns the keys that exist at this time, in the order of their ids.
pub(super) fn list(sql: &mut dyn Sql) -> StoreResult<Vec<IssuedApiKey>> {
    let now = sql.now()?;
    issued_keys(sql.rows(statements::SELECT_VALID, &[milliseconds(now).into()])?)
}

/// The rows of a key: one for each token, or one without a token.
struct KeyRows {
    key: KeyRow,
    /// The other columns.
    tokens: Vec<Row>,
}

/// Groups rows, which are in the order of the ids.
fn grouped(rows: Vec<Row>) -> StoreResult<Vec<KeyRows>> {
    let mut groups: Vec<KeyRows> = Vec::new();
    for mut row in rows {
        let key = key_row(&mut row)?;
        match groups.last_mut() {
            Some(last) if last.key.id == key.id => last.tokens.push(row),
            _ => groups.push(KeyRows {
                key,
                tokens: vec![row],
            }),
        }
    }
    Ok(groups)
}

/// Returns the keys of rows that all have a token.
pub(super) fn issued_keys(rows: Vec<Row>) -> StoreResult<Vec<IssuedApiKey>> {
    let mut keys = Vec::new();
    for KeyRows { key, tokens } in grouped(rows)? {
        let tokens = tokens.into_iter().map(|row| issued_token(row, &key));
        keys.push(IssuedApiKey {
            tokens: tokens.collect::<StoreResult<_>>()?,
            key: key.key()?,
        });
    }
    Ok(keys)
}

fn issued_token(mut row: Row, key: &KeyRow) -> StoreResult<IssuedToken> {
    let bytes = row.optional_bytes()?.unwrap_or_default();
    let digest = digest(&bytes).ok_or_else(|| key.corrupt("the digest of a token is malformed"))?;
    let last_four = row.text()?;
    let created = row.integer()?;
    let expires = row.optional_integer()?;
    let token = IssuedToken::from_stored(digest, last_four, created, expires);
    token.map_err(|problem| key.corrupt(problem))
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
    let known = match known {
        Some(known) if continues(sql, &state, known)? => Some(known.version),
        _ => None,
    };
    let is_complete = known.is_none();
    let from = known.unwrap_or(i64::MIN);
    let rows = sql.rows(statements::SELECT_CHANGED, &[from.into()])?;
    let mut keys = Vec::new();
    let mut counts = KeyCounts::default();
    for rows in grouped(rows)? {
        keys.push(stored_key(rows, &mut counts)?);
    }
    if is_complete && counts != state.counts {
        return Err(corrupt(format!(
            "the store has {counts}, and its state says {}: a restore is not complete, or rows were changed by hand",
            state.counts
        )));
    }
    Ok(Some(KeyDelta {
        state,
        keys,
        is_complete,
    }))
}

/// Returns whether the store still has the history of a state that is known.
fn continues(sql: &mut dyn Sql, state: &KeyState, known: &KeyState) -> StoreResult<bool> {
    let values = [known.version.into(), known.mark.as_slice().into()];
    let mut rows = sql.rows(statements::COUNT_MARKS, &values)?;
    let marks = match rows.pop() {
        Some(mut row) => row.integer()?,
        None => 0,
    };
    Ok(state.continues(known, marks))
}

/// Returns a key for a directory, and counts its rows.
fn stored_key(rows: KeyRows, counts: &mut KeyCounts) -> StoreResult<StoredKey> {
    let KeyRows { key, tokens } = rows;
    counts.keys += 1;
    let mut stored = StoredKey {
        key: key.key().map(Arc::new).map_err(|failure| failure.reason()),
        id: key.id,
        tokens: Vec::new(),
    };
    for mut row in tokens {
        let Some(bytes) = row.optional_bytes()? else {
            continue;
        };
        let expires = row.optional_integer()?.map(from_milliseconds);
        counts.tokens += 1;
        // No token has a malformed digest.
        if let Some(digest) = digest(&bytes) {
            stored.tokens.push(StoredToken { digest, expires });
        }
    }
    Ok(stored)
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
        version: row.integer()?,
        mark: row.optional_bytes()?.unwrap_or_default(),
        counts: KeyCounts {
            keys: row.integer()?,
            tokens: row.integer()?,
        },
    })
}
