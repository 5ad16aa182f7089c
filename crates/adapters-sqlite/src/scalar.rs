//! Queries whose result is one value.

use diesel::{QueryResult, RunQueryDsl, SqliteConnection, dsl::sql, sql_types};

pub(crate) fn number(connection: &mut SqliteConnection, query: &str) -> QueryResult<i64> {
    sql::<sql_types::BigInt>(query).get_result(connection)
}

pub(crate) fn text(connection: &mut SqliteConnection, query: &str) -> QueryResult<String> {
    sql::<sql_types::Text>(query).get_result(connection)
}
