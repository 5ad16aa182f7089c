//! Assertions about calls of stores that fail.

use std::{error::Error, fmt::Debug};

/// The text of [`StoreFailure::Unavailable`](crate::ports::StoreFailure::Unavailable), and of errors that contain it.
pub const UNAVAILABLE: &str = "the store is unavailable";
/// The text of [`StoreFailure::Overloaded`](crate::ports::StoreFailure::Overloaded).
pub const OVERLOADED: &str = "the store is overloaded";
/// The text of [`StoreFailure::Timeout`](crate::ports::StoreFailure::Timeout).
pub const TIMED_OUT: &str = "the store did not respond in time";
/// The text of [`StoreFailure::Corrupt`](crate::ports::StoreFailure::Corrupt).
pub const CORRUPT: &str = "the store contains an invalid entry";
/// The text of [`StoreFailure::OutcomeUnknown`](crate::ports::StoreFailure::OutcomeUnknown).
pub const UNKNOWN: &str = "the outcome is unknown: the change may have been made";

/// Asserts that a call fails with this text. Returns the cause, which may be empty.
///
/// # Panics
/// If it does not.
#[track_caller]
pub fn assert_fails<T: Debug>(result: Result<T, impl Error>, text: &str) -> String {
    let error = result.expect_err(text);
    assert_eq!(error.to_string(), text, "{error:?}");
    error.source().map_or_else(String::new, ToString::to_string)
}
