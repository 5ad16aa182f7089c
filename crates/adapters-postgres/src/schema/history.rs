use diesel::{prelude::*, select, sql_types};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use super::{migration_error::MigrationError, named_migration, tables::__diesel_schema_migrations as records};

/// Returns the names of the migrations that the database has not seen. Warns about expansions by a newer program.
pub(super) async fn pending(connection: &mut AsyncPgConnection) -> Result<Vec<String>, MigrationError> {
    let seen = recorded_names(connection).await?;
    let ours: Vec<String> = named_migration::all().into_iter().map(|migration| migration.name).collect();
    let unknown = seen.iter().filter(|name| !ours.contains(name)).cloned();
    let (newer, contracted): (Vec<_>, Vec<_>) = unknown.partition(|name| named_migration::is_expansion(name));
    if !contracted.is_empty() {
        return Err(MigrationError::Contracted(contracted));
    }
    if !newer.is_empty() {
        tracing::warn!(migrations = newer.join(", "), "a newer program has expanded the schema");
    }
    Ok(ours.into_iter().filter(|name| !seen.contains(name)).collect())
}

/// Returns no names if there is no table of records, and does not create it.
async fn recorded_names(connection: &mut AsyncPgConnection) -> QueryResult<Vec<String>> {
    diesel::define_sql_function! { fn to_regclass(name: sql_types::Text) -> sql_types::Nullable<sql_types::Oid>; }
    let table: Option<u32> = select(to_regclass("__diesel_schema_migrations")).get_result(connection).await?;
    match table {
        None => Ok(Vec::new()),
        Some(_) => records::table.select(records::version).order(records::version).load(connection).await,
    }
}
