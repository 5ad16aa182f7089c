//! Single values of the file.

use diesel::{QueryResult, RunQueryDsl, SqliteConnection, dsl::sql, sql_types};

/// Returns the result of a query that has one number.
pub(crate) fn number(connection: &mut SqliteConnection, query: &str) -> QueryResult<i64> {
    sql::<sql_types::BigInt>(query).get_result(connection)
}

/// Whether a table exists.
pub(crate) fn has_table(connection: &mut SqliteConnection, name: &str) -> QueryResult<bool> {
    let query = format!("SELECT count(*) FROM sqlite_schema WHERE name = '{name}'");
    Ok(number(connection, &query)? > 0)
}

/// Returns the result of a query that has one text.
pub(crate) fn text(connection: &mut SqliteConnection, query: &str) -> QueryResult<String> {
    sql::<sql_types::Text>(query).get_result(connection)
}
