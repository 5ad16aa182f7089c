//! The schema of the file, and its migrations.

pub(crate) mod tables;
