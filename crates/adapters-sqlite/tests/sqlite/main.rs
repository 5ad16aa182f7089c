//! The adapter with files.

mod bulk_contract;
mod bulk_pets;
mod bulk_snapshots;
mod bulk_support;
mod child;
mod contract;
mod diagnosis;
mod files;
mod group_commit;
mod histories;
mod keys_changes;
mod keys_contract;
mod keys_corrupt;
mod keys_revocations;
mod keys_support;
mod keys_uses;
mod kills;
mod logs;
mod migrations;
mod outcomes;
mod reads;
mod sql;
mod store;
mod sweep;
