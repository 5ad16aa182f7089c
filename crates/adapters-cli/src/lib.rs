//! The command line as a driving adapter: arguments, output and errors of the commands on pets, API keys and stores.
//!
//! **Problem.** Operators and their scripts need the outcome of a command, and no output may show a secret. A command
//! can run for an hour: it is interrupted, its output is cut off, or its disk is full.
//!
//! **Invariant.** Standard output contains the result of a command and nothing else; everything else is on standard
//! error. An error never repeats an argument that can be a secret. A file with its final name is complete.
//!
//! **Proof.** `crates/server/tests/process`: `keys.rs`, `pets_import.rs`, `pets_export.rs`, `copy_store.rs` and
//! `doctor.rs`.
//!
//! Each command has a module with its arguments and a function that runs it over use cases of `app`. The server opens
//! the stores that the configuration selects.

pub mod backup;
pub mod copy;
pub mod doctor;
pub mod keys;
mod output;
pub mod pets;
pub mod quickstart;

use thiserror::Error;

pub use self::output::{ClosedOutput, duration_since, print};

/// The command line, or the configuration of the stores, does not allow the command: exit code 2.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// What a command does with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreUse {
    /// It only reads.
    Read,
    /// It writes to a store that exists.
    Write,
    /// It writes, and may create the SQLite file.
    Create,
}

impl StoreUse {
    const fn writing(creates: bool) -> Self {
        if creates { Self::Create } else { Self::Write }
    }
}
