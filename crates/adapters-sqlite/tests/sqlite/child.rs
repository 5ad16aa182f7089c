//! Scenarios in a process of their own: this test program, started again.

use std::{
    env,
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{bulk, diagnosis, files, full_disk, keys, kills, outcomes};

const SCENARIO: &str = "ANIMAL_STORE_TEST_SCENARIO";
const PATH: &str = "ANIMAL_STORE_TEST_PATH";

/// Returns the command that runs a scenario with a path. The program is the last of its arguments if `wrapper` is a
/// command that starts its arguments.
pub(crate) fn command(wrapper: &[&str], scenario: &str, path: &Path) -> Command {
    let program = env::current_exe().expect("this program");
    let mut arguments = wrapper
        .iter()
        .map(Into::into)
        .chain([program.into_os_string()]);
    let mut command = Command::new(arguments.next().expect("a program"));
    command
        .args(arguments)
        .args(["--exact", "child::scenario", "--ignored", "--nocapture"]);
    command.env(SCENARIO, scenario).env(PATH, path);
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
    run(
        &[
            "unshare",
            "-rm",
            "sh",
            "-c",
            &script,
            path.to_str().expect("UTF-8"),
        ],
        scenario,
        path,
    );
}

/// Adds a line to the file that `NOT_TESTED` names. `scripts/check` ends with these lines.
fn report_not_tested(scenario: &str) {
    if let Some(path) = env::var_os("NOT_TESTED") {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .expect("the list of what is not tested");
        file.write_all(format!("SQLite, {scenario}: this user cannot mount here\n").as_bytes())
            .expect("written");
    }
}

#[test]
#[ignore = "other tests start it in a process of its own"]
fn scenario() {
    let (Some(scenario), Some(path)) = (env::var_os(SCENARIO), env::var_os(PATH)) else {
        return;
    };
    let path = PathBuf::from(path);
    match scenario.to_str().expect("UTF-8") {
        "adds" => kills::add_until_killed(&path),
        "full disk" => outcomes::fill_the_disk(&path),
        "revoke on a full disk" => run_async(full_disk::revoke_keys_on_a_full_disk(&path)),
        "doctor: not writable" => run_async(diagnosis::find_that_it_is_not_writable(&path)),
        "doctor: mounted alone" => run_async(diagnosis::find_that_it_is_mounted_alone(&path)),
        "write error" => outcomes::add_until_a_write_fails(&path),
        "no room" => files::expect_full_disk(&path),
        "not writable" => files::expect_not_writable(&path),
        "revoke" => keys::revoke_a_key(&path),
        "no umask" => files::create(&path),
        "partial backup" => bulk::create_partial_backup(&path),
        other => panic!("unknown: {other}"),
    }
}

fn run_async(scenario: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(scenario);
}
