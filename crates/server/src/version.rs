//! The version of the program, with the commit and the date of its build, which `build.rs` records.

use animal_store_telemetry::Build;

/// Version and commit.
pub(crate) const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("BUILD_COMMIT"),
};

/// Version, commit and date of the build, such as `0.1.0 (4375996f2, 2026-11-22)`.
pub(crate) const DESCRIPTION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("BUILD_COMMIT"),
    ", ",
    env!("BUILD_DATE"),
    ")"
);
