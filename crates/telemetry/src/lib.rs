//! Logs, traces and metrics of a process, and its messages on standard error.
//!
//! The crate knows nothing of pets: the program passes it the settings, its [`Build`], and the targets that every
//! filter of the log lets pass.

mod log;
pub mod process_metrics;
pub mod stderr;
mod traces;

pub use log::{CommandLog, LogFilter, LogFormat, LogSettings, ServiceLog, start};
pub use traces::{SpanLayer, Traces, TracesError};

/// The build of the program, for `build_info` and the resource of the traces.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    /// Version of the program, such as `0.1.0`.
    pub version: &'static str,
    /// Commit that was built, or `unknown`.
    pub commit: &'static str,
}
