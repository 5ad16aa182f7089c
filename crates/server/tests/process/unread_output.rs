//! Standard output and standard error that cannot be written, or that are pipes which are full and not read.

use std::{
    io::{PipeReader, PipeWriter},
    thread,
};

use crate::prelude::*;

/// Keeps a pipe full until its reader is dropped.
fn fill(mut pipe: PipeWriter) {
    thread::spawn(move || while pipe.write_all(&[b'\n'; 4096]).is_ok() {});
}

pub(crate) fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = io::pipe().expect("a pipe");
    fill(writer.try_clone().expect("a descriptor"));
    (reader, writer)
}

#[test]
fn a_command_whose_log_cannot_be_written_is_not_a_success() {
    let store = Store::sqlite();
    store.create_key();
    let program = || store.with_own_keys();
    // It warns that revoked keys are valid again.
    let backup = store.backup();
    let copy = Program::bare().args("copy --to copy.db --from");
    let copy = copy.arg(backup.path());
    for command in [
        program().args("keys create --label x"),
        program().args("pets export"),
        program().args("migrate"),
        copy,
    ] {
        let unlogged = command.run_by_shell(r#"exec "$@" 2>/dev/full"#);
        unlogged.run().assert_code(1);
    }
}

/// A program that generates an API key: the lines on standard error have its address. The tests wait for its timeout.
fn program(stdout: impl Into<Stdio>) -> Program {
    let program = Program::new().args("--print-key").stdout(stdout);
    program.set("shutdown.timeout", "1s")
}

/// Returns the address in the last line of the quickstart, which is printed before the service starts.
fn explorer(line: &str) -> Option<SocketAddr> {
    let (_, url) = line.split_once("http://")?;
    url.strip_suffix("/docs")?.parse().ok()
}

/// Waits until the service responds: it has written to the log then.
fn wait_until_served(address: SocketAddr) {
    assert_eq!(status(address, TOKEN), 401);
}

#[test]
fn a_log_that_is_not_read_ends_the_process_at_the_shutdown_timeout_with_an_error() {
    let (_reader, stdout) = full_pipe();
    let mut running = program(stdout).start();
    wait_until_served(running.wait_for(explorer));

    let exited = running.terminate();
    let last = exited.assert_code(1).stderr.last().expect("a line");
    let error = "animal-store: the log could not be written to standard output within 1s";
    assert_eq!(last, error);
}

#[test]
fn a_standard_error_that_is_not_read_either_does_not_keep_the_process() {
    let (_reader, stdout) = full_pipe();
    let (reader, stderr) = io::pipe().expect("a pipe");
    let filled = stderr.try_clone().expect("a descriptor");
    let running = program(stdout).stderr(stderr).start();
    let mut lines = lines(reader);
    let address = lines.find_map(|line| explorer(&line));
    wait_until_served(address.expect("the quickstart"));
    fill(filled);
    running.terminate().assert_code(1);
}

#[test]
fn a_log_that_cannot_be_written_is_reported_once_and_does_not_stop_the_service() {
    let full = File::create("/dev/full").expect("a device");
    // The log is flushed within the timeout on a loaded machine, too.
    let mut running = program(full).set("shutdown.timeout", "30s").start();
    let report = "animal-store: the log cannot be written to standard output: No space left on device (os error 28)";
    running.wait_for_text(report);
    let address = running.wait_for(explorer);
    for _ in 0..10 {
        wait_until_served(address);
    }

    let exited = running.terminate();
    let lines = exited.assert_code(0).stderr.iter();
    let reports: Vec<_> = lines
        .filter(|line| line.starts_with("animal-store: "))
        .collect();
    assert_eq!(reports, [report]);
}
