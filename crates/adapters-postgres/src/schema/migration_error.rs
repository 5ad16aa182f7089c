use std::time::Duration;

use thiserror::Error;

use crate::error::ConnectionError;

/// The schema cannot be used.
#[derive(Debug, Error)]
pub enum MigrationError {
    /// The database cannot be reached or refuses a statement. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// Another process is changing the schema. A retry may succeed.
    #[error("another process is changing the schema, and has not finished within {} seconds", .0.as_secs())]
    Locked(Duration),
    /// A migration did not get the lock of a table within 200 ms. It had no effect. A retry may succeed.
    #[error("another session uses the tables: {0}")]
    TablesInUse(String),
    /// The encoding of the database is not UTF-8.
    #[error("{0}")]
    Encoding(String),
    /// These migrations are pending and are not run here.
    #[error("these migrations are pending: {}; run `animal-store migrate`", .0.join(", "))]
    Pending(Vec<String>),
    /// A program from before the first release made the tables.
    #[error(
        "a program from before version 0.1.0 made the tables of this database: export the pets with that program \
         (animal-store pets export --output FILE), and import FILE into an empty database with this one \
         (animal-store pets import FILE)"
    )]
    OlderLayout,
    /// A newer program removed parts of the schema by these migrations.
    #[error(
        "a newer program has made changes that this one cannot work with: {}; use its release, or restore a backup",
        .0.join(", ")
    )]
    Contracted(Vec<String>),
    /// A migration failed. It had no effect, unless it runs outside of a transaction.
    #[error("migration {name} failed: {reason}")]
    Failed {
        /// The version of the migration.
        name: String,
        /// The message of PostgreSQL.
        reason: String,
    },
}

impl MigrationError {
    /// Whether every start fails until the database or the program is changed.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Encoding(_) | Self::Pending(_) | Self::OlderLayout | Self::Contracted(_))
    }

    /// Whether an attempt may soon succeed, and costs others nothing.
    pub(crate) const fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Locked(_))
    }
}

impl From<ConnectionError> for MigrationError {
    fn from(error: ConnectionError) -> Self {
        let text = error.to_string();
        if error.is_about_the_encoding() { Self::Encoding(text) } else { Self::Unavailable(text) }
    }
}
