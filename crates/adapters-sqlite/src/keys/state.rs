//! The row of the state of the keys, and their marks.

use animal_store_adapter_kit::{
    KeyCounts, KeyDelta, KeyRows, KeyState, SELECT_KEY_STATE, SelectKeys,
};
use diesel::{
    dsl::{count_star, sql},
    prelude::*,
    sql_types::{BigInt, Binary},
};

use super::rows;
use crate::{error::corrupt, tables::api_key_marks};

pub(super) fn read(connection: &mut SqliteConnection) -> QueryResult<KeyState> {
    let row = sql::<(BigInt, Binary, BigInt, BigInt)>(SELECT_KEY_STATE).get_result(connection);
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
pub(super) fn read_delta(
    connection: &mut SqliteConnection,
    known: Option<&KeyState>,
) -> QueryResult<Option<KeyDelta>> {
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
    KeyRows::delta(rows, state, since.is_none())
        .map(Some)
        .map_err(corrupt)
}
