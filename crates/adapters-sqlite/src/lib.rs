//! Pets and API keys in one SQLite file.

#![warn(clippy::future_not_send)]

mod file;
mod schema;
mod settings;

pub use file::{SqliteFile, SqliteFileError};
pub use settings::SqliteSettings;
