//! The version of the program, with the commit and the date of its build, which `build.rs` records.

/// Version of the package, such as `0.1.0`.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// First nine digits of the commit, or `unknown`.
pub(crate) const COMMIT: &str = env!("BUILD_COMMIT");

/// Version, commit and date of the build, such as `0.1.0 (4375996f2, 2026-11-22)`.
pub(crate) const BUILD: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("BUILD_COMMIT"),
    ", ",
    env!("BUILD_DATE"),
    ")"
);
