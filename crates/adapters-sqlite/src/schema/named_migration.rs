use std::fmt;

use diesel::{
    connection::BoxableConnection,
    migration::{self, Migration, MigrationMetadata, MigrationName, MigrationSource, MigrationVersion},
    sqlite::Sqlite,
};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

const EMBEDDED: EmbeddedMigrations = embed_migrations!("migrations");

/// A migration that is recorded by its whole name. Diesel would record only the number before the first `_`, by which
/// an older program could not distinguish an expansion from a contraction.
pub(super) struct NamedMigration {
    pub(super) name: String,
    inner: Box<dyn Migration<Sqlite>>,
}

/// Returns the migrations of this program, in the order in which they are run.
pub(super) fn all() -> Vec<NamedMigration> {
    let mut migrations = MigrationSource::<Sqlite>::migrations(&EMBEDDED).expect("embedded migrations can be read");
    migrations.sort_by_key(|migration| migration.name().to_string());
    migrations.into_iter().map(|inner| NamedMigration { name: inner.name().to_string(), inner }).collect()
}

/// Returns the names of [`all`].
pub(super) fn names() -> Vec<String> {
    all().into_iter().map(|migration| migration.name).collect()
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

impl Migration<Sqlite> for NamedMigration {
    fn run(&self, connection: &mut dyn BoxableConnection<Sqlite>) -> migration::Result<()> {
        self.inner.run(connection)
    }

    fn revert(&self, connection: &mut dyn BoxableConnection<Sqlite>) -> migration::Result<()> {
        self.inner.revert(connection)
    }

    fn metadata(&self) -> &dyn MigrationMetadata {
        self.inner.metadata()
    }

    fn name(&self) -> &dyn MigrationName {
        self
    }
}
