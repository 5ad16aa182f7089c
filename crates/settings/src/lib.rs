//! The engine of a configuration: defaults, then a TOML file, then environment variables, then flags. The later source
//! wins.
//!
//! **Problem.** A typo that is ignored is found in production, a report that stops at the first error costs a restart
//! per error, and a report that quotes the file can show a secret.
//!
//! **Invariant.** Unknown settings are refused, with the nearest name. Each error names its setting and the source of the
//! value, with the line in a file. An error belongs to a section: a command does not depend on the sections that it does
//! not use. No file is opened but that of the settings, until a command uses it. No error and no output contains a
//! secret.
//!
//! **Proof.** `crates/settings/tests`.
//!
//! A [`Schema`] has a table of [`Setting`]s per section, and merges [`Sources`] into [`Values`]. A function per section
//! reads its values with [`parsers`]; within [`Values::open`], it also opens the files that they name.

mod error;
mod files;
pub mod parsers;
mod print;
mod schema;
mod sources;
mod values;

pub use error::SettingsError;
pub use schema::{Schema, Setting};
pub use sources::Sources;
pub use values::{Changes, Values, items};
