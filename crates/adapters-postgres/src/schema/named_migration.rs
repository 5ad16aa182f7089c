use std::fmt;

use diesel::{
    connection::BoxableConnection,
    migration::{self, Migration, MigrationMetadata, MigrationName, MigrationSource, MigrationVersion},
    pg::Pg,
    prelude::*,
    select, sql_types,
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use super::tables::__diesel_schema_migrations as records;

const EMBEDDED: EmbeddedMigrations = embed_migrations!("migrations");

/// A migration that is recorded by its whole name. Diesel would record only the number before the first `_`, by which
/// an older program could not distinguish an expansion from a contraction.
pub(super) struct NamedMigration {
    pub(super) name: String,
    inner: Box<dyn Migration<Pg>>,
}

/// Returns the migrations of this program, in the order in which they are run.
pub(super) fn all() -> Vec<NamedMigration> {
    let mut migrations = MigrationSource::<Pg>::migrations(&EMBEDDED).expect("embedded migrations can be read");
    migrations.sort_by_key(|migration| migration.name().to_string());
    migrations.into_iter().map(|inner| NamedMigration { name: inner.name().to_string(), inner }).collect()
}

/// Returns the names of [`all`].
pub(super) fn names() -> Vec<String> {
    all().into_iter().map(|migration| migration.name).collect()
}

/// Returns no names if the table of records does not exist, and does not create it.
pub(super) async fn recorded_names(connection: &mut AsyncPgConnection) -> QueryResult<Vec<String>> {
    diesel::define_sql_function! { fn to_regclass(name: sql_types::Text) -> sql_types::Nullable<sql_types::Oid>; }
    let table: Option<u32> = select(to_regclass("__diesel_schema_migrations")).get_result(connection).await?;
    match table {
        None => Ok(Vec::new()),
        Some(_) => records::table.select(records::version).order(records::version).load(connection).await,
    }
}

impl MigrationName for NamedMigration {
    fn version(&self) -> MigrationVersion<'_> {
        self.name.as_str().into()
    }
}

impl fmt::Display for NamedMigration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl Migration<Pg> for NamedMigration {
    fn run(&self, connection: &mut dyn BoxableConnection<Pg>) -> migration::Result<()> {
        self.inner.run(connection)
    }

    fn revert(&self, connection: &mut dyn BoxableConnection<Pg>) -> migration::Result<()> {
        self.inner.revert(connection)
    }

    fn metadata(&self) -> &dyn MigrationMetadata {
        self.inner.metadata()
    }

    fn name(&self) -> &dyn MigrationName {
        self
    }
}
