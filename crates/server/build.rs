//! Records the commit and the date of the build in the program.
//!
//! The commit is that of the Git working tree, or `ANIMAL_STORE_COMMIT` without one (in a tarball, a container or a
//! package), or `unknown`. It has nine digits. Uncommitted changes are not shown: otherwise each edit of a file would
//! run this script again.

use std::{
    env,
    path::Path,
    process::Command,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = commit_of_working_tree()
        .or_else(|| variable("ANIMAL_STORE_COMMIT").map(|id| id.chars().take(9).collect()));
    println!(
        "cargo::rustc-env=BUILD_COMMIT={}",
        commit.as_deref().unwrap_or("unknown")
    );
    let date = humantime::format_rfc3339_seconds(build_time()).to_string();
    println!(
        "cargo::rustc-env=BUILD_DATE={}",
        &date[.."2026-01-01".len()]
    );
}

/// Returns `None` without Git or without a working tree of this project: another one may contain a tarball.
fn commit_of_working_tree() -> Option<String> {
    if !Path::new(ROOT).join(".git").exists() {
        return None;
    }
    // Git appends a line to the log of HEAD at each commit and each checkout. Without a log, Cargo runs this script at
    // each build.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!(
        "cargo::rerun-if-changed={}",
        Path::new(ROOT).join(log).display()
    );
    git(&["rev-parse", "--short=9", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(ROOT)
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Returns a variable of the environment, unless it is empty.
#[expect(
    clippy::disallowed_methods,
    reason = "this script has no other configuration"
)]
fn variable(name: &str) -> Option<String> {
    println!("cargo::rerun-if-env-changed={name}");
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// `SOURCE_DATE_EPOCH` in seconds since 1970, for builds that can be repeated, or now.
fn build_time() -> SystemTime {
    let seconds = variable("SOURCE_DATE_EPOCH").and_then(|text| text.parse().ok());
    seconds.map_or_else(SystemTime::now, |seconds| {
        UNIX_EPOCH + Duration::from_secs(seconds)
    })
}
