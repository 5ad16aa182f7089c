//! Scenarios in a process of their own: this test program, started again.

use std::{
    env,
    ffi::OsStr,
    fs::OpenOptions,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

pub(crate) const SCENARIO: &str = "ANIMAL_STORE_TEST_SCENARIO";
pub(crate) const PATH: &str = "ANIMAL_STORE_TEST_PATH";

/// Returns the command that runs a scenario with a path. The program is the last of its arguments if `wrapper` is a
/// command that starts its arguments.
pub(crate) fn command(wrapper: &[&str], scenario: &str, path: &Path) -> Command {
    let program = env::current_exe().expect("this program");
    let mut command = Command::new(wrapper.first().map_or(program.as_os_str(), OsStr::new));
    if let [_, rest @ ..] = wrapper {
        command.args(rest).arg(program);
    }
    command
        .args(["--exact", "scenarios::scenario", "--ignored", "--nocapture"])
        .env(SCENARIO, scenario)
        .env(PATH, path);
    command
}

/// Runs a scenario to its end.
#[track_caller]
pub(crate) fn run(wrapper: &[&str], scenario: &str, path: &Path) {
    let output = command(wrapper, scenario, path).output().expect("started");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

/// Runs a scenario to its end, in a shell that runs this script first.
#[track_caller]
pub(crate) fn run_after(script: &str, scenario: &str, path: &Path) {
    let script = format!("{script}; exec \"$@\"");
    run(&["sh", "-c", &script, "sh"], scenario, path);
}

/// Runs a scenario on file systems that only it can see, if this machine allows that. `mounts` is a script that has the
/// path as `$0`.
#[track_caller]
pub(crate) fn run_with_mounts(mounts: &str, scenario: &str, path: &Path) {
    let mut attempt = Command::new("unshare");
    attempt
        .args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"])
        .stderr(Stdio::null());
    if !attempt.status().is_ok_and(|status| status.success()) {
        return report_not_tested(scenario);
    }
    let script = format!("set -e; {mounts}; exec \"$@\"");
    let zero = path.to_str().expect("UTF-8");
    let wrapper = ["unshare", "-rm", "sh", "-c", &script, zero];
    run(&wrapper, scenario, path);
}

/// Adds a line to the file that `NOT_TESTED` names. `scripts/check` ends with these lines.
fn report_not_tested(scenario: &str) {
    let Some(path) = env::var_os("NOT_TESTED") else {
        return;
    };
    let file = OpenOptions::new().append(true).create(true).open(path);
    let mut file = file.expect("the list of what is not tested");
    writeln!(file, "SQLite, {scenario}: this user cannot mount here").expect("written");
}
