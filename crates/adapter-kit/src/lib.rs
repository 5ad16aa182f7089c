//! What the adapters of stores share. It knows no store.
//!
//! [`queue`] has requests that wait for a batch. [`ApiKeySnapshot`] looks API keys up in memory, and
//! [`ApiKeyUseRecord`] writes their uses. [`Outage`] is a backoff that logs each reason once. [`SchemaComparison`]
//! compares migrations, [`ClockReadings`] decide what has expired, and [`pet_from_row`] checks a row of a table of pets.
//! [`SqlApiKeyStore`] changes and lists API keys in SQLite and in PostgreSQL. [`Panics`] notes those of tasks.
//! [`metrics`] registers families of metrics. [`Believed`] judges files, also those of the configuration.

#![warn(clippy::future_not_send)]

mod clock_readings;
mod concurrency;
mod directory;
mod files;
mod hosts;
mod idempotency_row;
mod keys;
pub mod metrics;
mod outage;
mod panics;
mod pet_row;
pub mod queue;
mod schema_comparison;
#[cfg(feature = "test-support")]
pub mod test_support;
mod users;
mod uses;

pub use clock_readings::ClockReadings;
pub use directory::{
    ApiKeySnapshot, KeyCheck, KeyCounts, KeyDelta, KeySource, KeyState, StoredKey, StoredToken,
};
pub use files::{Believed, Objection, object_to_readers};
pub use hosts::is_this_machine;
pub use idempotency_row::idempotency_record;
pub use keys::{
    Access, KeyDatabase, KeySession, Row, SELECT_STATE, Sql, SqlApiKeyStore, SqlUses, Value,
    audit_kept_since, key_state, log_unknown_revocation, log_unrecorded_revocation, read_delta,
};
pub use outage::{Outage, backoff};
pub use panics::Panics;
pub use pet_row::{CorruptRow, pet_from_row};
pub use schema_comparison::SchemaComparison;
pub use users::{command_of_owner, owner_of, this_user};
pub use uses::{ApiKeyUseRecord, PendingUses, UseStore};
