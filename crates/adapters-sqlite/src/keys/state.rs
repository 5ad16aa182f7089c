//! The row of the state of the keys, and their marks.

use animal_store_adapter_kit::{
    KeyChanges, KeyCounts, KeyRows, KeyState, MARKS_KEPT, SelectKeys, new_mark,
};
use diesel::{
    dsl::{count_star, sql},
    prelude::*,
    sql_query,
    sql_types::{BigInt, Binary},
};

use super::rows;
use crate::{
    error::corrupt,
    tables::{api_key_marks, api_key_state},
};

/// The numbers of keys and tokens. After a change by an older program, they are counted.
const KEYS: &str =
    "CASE WHEN marked_version = version THEN keys ELSE (SELECT count(*) FROM api_keys) END";
const TOKENS: &str =
    "CASE WHEN marked_version = version THEN tokens ELSE (SELECT count(*) FROM api_key_tokens) END";

pub(super) fn version(connection: &mut SqliteConnection) -> QueryResult<i64> {
    let version = api_key_state::table
        .select(api_key_state::version)
        .first(connection)
        .optional()?;
    version.ok_or_else(|| corrupt("table api_key_state has no row"))
}

fn read(connection: &mut SqliteConnection) -> QueryResult<KeyState> {
    let columns = (
        api_key_state::version,
        api_key_state::mark,
        sql::<BigInt>(KEYS),
        sql::<BigInt>(TOKENS),
    );
    let row = api_key_state::table.select(columns).first(connection);
    let (version, mark, keys, tokens) = row
        .optional()?
        .ok_or_else(|| corrupt("table api_key_state has no row"))?;
    let counts = KeyCounts { keys, tokens };
    Ok(KeyState {
        version,
        mark,
        counts,
    })
}

/// Reads what has changed since the state that is known.
pub(super) fn read_changes(
    connection: &mut SqliteConnection,
    known: Option<&KeyState>,
) -> QueryResult<Option<KeyChanges>> {
    let state = read(connection)?;
    if known == Some(&state) {
        return Ok(None);
    }
    let mut since = None;
    if let Some(known) = known {
        let (version, mark) = (api_key_marks::version, api_key_marks::mark);
        let is_known = version.eq(known.version).and(mark.eq(&known.mark));
        let marks = api_key_marks::table
            .filter(version.gt(known.version).or(is_known))
            .select(count_star())
            .first(connection)?;
        since = state.continues(known, marks).then_some(known.version);
    }
    let select = SelectKeys::ChangedSince(since.unwrap_or(i64::MIN));
    let rows = rows::read(connection, select)?;
    KeyRows::changes(rows, state, since.is_none())
        .map(Some)
        .map_err(corrupt)
}

pub(super) fn write(
    connection: &mut SqliteConnection,
    version: i64,
    growth: KeyCounts,
) -> QueryResult<()> {
    let mark = new_mark();
    let update = "UPDATE api_key_state SET version = ?, mark = ?, marked_version = ?,
        keys = CASE WHEN marked_version = version THEN keys + ? ELSE (SELECT count(*) FROM api_keys) END,
        tokens = CASE WHEN marked_version = version THEN tokens + ?
            ELSE (SELECT count(*) FROM api_key_tokens) END";
    sql_query(update)
        .bind::<BigInt, _>(version)
        .bind::<Binary, _>(&mark)
        .bind::<BigInt, _>(version)
        .bind::<BigInt, _>(growth.keys)
        .bind::<BigInt, _>(growth.tokens)
        .execute(connection)?;
    diesel::replace_into(api_key_marks::table)
        .values((
            api_key_marks::version.eq(version),
            api_key_marks::mark.eq(&mark[..]),
        ))
        .execute(connection)?;
    let others = api_key_marks::version
        .gt(version)
        .or(api_key_marks::version.le(version - MARKS_KEPT));
    diesel::delete(api_key_marks::table.filter(others))
        .execute(connection)
        .map(drop)
}
