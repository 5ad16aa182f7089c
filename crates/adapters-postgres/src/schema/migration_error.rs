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
    /// A migration failed. It had no effect, unless it runs outside of a transaction.
    #[error("{0}")]
    Failed(String),
    /// Every attempt fails until the database or the program is changed.
    #[error("{0}")]
    Unusable(String),
}

impl From<ConnectionError> for MigrationError {
    fn from(error: ConnectionError) -> Self {
        let text = error.to_string();
        if error.is_about_the_encoding() { Self::Unusable(text) } else { Self::Unavailable(text) }
    }
}
