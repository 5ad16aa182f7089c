//! Single values of the file.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use diesel::{QueryResult, RunQueryDsl, SqliteConnection, dsl::sql, sql_types};

/// The last millisecond that RFC 3339 can represent, since 1970.
const LAST: i64 = 253_402_300_799_999;

/// Returns the result of a query that has one number.
pub(crate) fn number(connection: &mut SqliteConnection, query: &str) -> QueryResult<i64> {
    sql::<sql_types::BigInt>(query).get_result(connection)
}

/// Returns the result of a query that has one text.
pub(crate) fn text(connection: &mut SqliteConnection, query: &str) -> QueryResult<String> {
    sql::<sql_types::Text>(query).get_result(connection)
}

/// Returns a time in milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> i64 {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).map_or(LAST, |milliseconds| milliseconds.min(LAST))
}

/// Returns the time of a number of milliseconds since 1970, at least 1970 and at most the last one that can be printed.
pub(crate) fn from_milliseconds(milliseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(milliseconds.clamp(0, LAST).unsigned_abs())
}
