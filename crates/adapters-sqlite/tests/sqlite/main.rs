//! The adapter with files.

mod bulk;
mod child;
mod contracts;
mod diagnosis;
mod disk;
mod files;
mod full_disk;
mod group_commit;
mod keys;
mod kills;
mod lost;
mod migrations;
mod moved;
mod outcomes;
mod overwritten;
mod prelude;
mod read_only;
mod reads;
mod refused_rows;
mod scenarios;
mod sql;
mod store;
mod sweep;
