//! Shared parts of the commands that move pets: progress, signals, files that are written, results.
//!
//! **Problem.** A command can run for an hour. It is interrupted, its output is cut off, or its disk is full.
//!
//! **Invariant.** A file with its final name is complete. A signal ends a command after the current batch, and the
//! error names the command that continues. Standard output has only the data or the result, standard error has
//! everything else.
//!
//! **Proof.** `crates/server/tests/process`: `pets_export.rs`, `pets_interrupted.rs` and `copy_interrupted.rs`.

mod continuation;
mod counted_reader;
mod estimate;
mod interruption;
mod new_file;
mod no_storage;
mod progress;
mod report;
mod stores;

pub(super) use self::{
    continuation::command_line,
    counted_reader::CountedReader,
    estimate::estimate,
    interruption::{StopRequest, run},
    new_file::NewFile,
    no_storage::NoStorage,
    progress::{Progress, Total},
    report::{ClosedOutput, print_result},
    stores::{open_stores, refuse_memory},
};
