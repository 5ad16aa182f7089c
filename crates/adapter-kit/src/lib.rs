//! What the adapters of stores share. It knows no store.
//!
//! [`queue`] has requests that wait for a batch. [`ApiKeySnapshot`] looks API keys up in memory, and
//! [`ApiKeyUseRecord`] writes their uses. [`Outage`] is a backoff that logs each reason once. [`SchemaComparison`]
//! compares migrations, [`ClockReadings`] decide what has expired, [`pet_from_row`] checks a row of a table of pets,
//! [`KeyRows`] are those of an API key, and [`AuditRow`] is that of a change of one.
//! [`metrics`] registers families of metrics. [`Believed`] judges files, also those of the configuration.

#![warn(clippy::future_not_send)]

mod audit_row;
mod clock_readings;
mod concurrency;
mod directory;
mod files;
mod hosts;
mod idempotency_row;
mod key_rows;
mod key_state;
pub mod metrics;
mod outage;
mod pet_row;
pub mod queue;
mod schema_comparison;
mod users;
mod uses;

pub use audit_row::{
    AuditRow, audit_entries, audit_entry, audit_kept_since, audit_row, log_unrecorded_revocation,
    prune_audit_log,
};
pub use clock_readings::ClockReadings;
pub use directory::{
    ApiKeySnapshot, KeyCheck, KeyCounts, KeyDelta, KeySource, KeyState, StoredKey, new_mark,
};
pub use files::{Believed, Objection, object_to_readers};
pub use hosts::is_this_machine;
pub use idempotency_row::idempotency_record;
pub use key_rows::{KeyColumns, KeyRows, KeyWrite, SelectKeys, TokenColumns};
pub use key_state::SELECT_KEY_STATE;
pub use outage::{Outage, backoff};
pub use pet_row::{CorruptRow, pet_from_row};
pub use schema_comparison::SchemaComparison;
pub use users::{command_of_owner, owner_of, this_user};
pub use uses::{ApiKeyUseRecord, PendingUses, UseStore, recorded_uses};
