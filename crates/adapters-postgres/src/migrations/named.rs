use std::fmt;

use diesel::{
    connection::BoxableConnection,
    migration::{Migration, MigrationMetadata, MigrationName, MigrationSource, MigrationVersion, Result},
    pg::Pg,
};
use diesel_migrations::EmbeddedMigrations;

/// A migration that is recorded by its whole name, not by the number it begins with.
pub(super) struct Named {
    pub(super) name: String,
    inner: Box<dyn Migration<Pg>>,
}

/// What Diesel asks for a name.
impl MigrationName for Named {
    fn version(&self) -> MigrationVersion<'_> {
        self.name.as_str().into()
    }
}

impl fmt::Display for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// Whether older programs can live with what the migration of this name did.
pub(super) fn expands(name: &str) -> bool {
    name.contains("_expand_") && !name.contains("_contract_")
}

impl Named {
    pub(super) fn all(source: &EmbeddedMigrations) -> Vec<Self> {
        let mut migrations = MigrationSource::<Pg>::migrations(source).expect("embedded migrations are there");
        migrations.sort_by_key(|migration| migration.name().to_string());
        migrations.into_iter().map(|inner| Self { name: inner.name().to_string(), inner }).collect()
    }
}

impl Migration<Pg> for Named {
    fn run(&self, connection: &mut dyn BoxableConnection<Pg>) -> Result<()> {
        self.inner.run(connection)
    }

    fn revert(&self, connection: &mut dyn BoxableConnection<Pg>) -> Result<()> {
        self.inner.revert(connection)
    }

    fn metadata(&self) -> &dyn MigrationMetadata {
        self.inner.metadata()
    }

    fn name(&self) -> &dyn MigrationName {
        self
    }
}
