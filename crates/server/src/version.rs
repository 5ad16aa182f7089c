//! The version of the program, with the commit of its build: `ANIMAL_STORE_COMMIT` in the environment of the compiler,
//! which `scripts/package` and the container image set.

use std::sync::LazyLock;

use animal_store_telemetry::Build;

/// Version and commit.
pub(crate) const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: match option_env!("ANIMAL_STORE_COMMIT") {
        Some(commit) => commit,
        None => "unknown",
    },
};

/// Version and commit as text, such as `0.1.0 (4375996f2)`.
pub(crate) static DESCRIPTION: LazyLock<String> =
    LazyLock::new(|| format!("{} ({})", BUILD.version, BUILD.commit));
