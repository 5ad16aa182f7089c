//! Standard output and standard error that cannot be written, or that are pipes which are full and not read.

use std::{
    fs::File,
    io::{self, PipeReader, PipeWriter, Write},
    process::Stdio,
    thread,
};

use animal_store_test_servers::HttpClient;

use crate::program::{Program, TOKEN, lines};

/// Keeps a pipe full until its reader is dropped.
fn fill(mut pipe: PipeWriter) {
    thread::spawn(move || while pipe.write_all(&[b'\n'; 4096]).is_ok() {});
}

pub(crate) fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = io::pipe().expect("a pipe");
    fill(writer.try_clone().expect("a descriptor"));
    (reader, writer)
}

/// A program that generates an API key: the lines on standard error have its address. The tests wait for its timeout.
fn program(stdout: impl Into<Stdio>) -> Program {
    Program::new()
        .args(&["--print-key"])
        .env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "1s")
        .stdout(stdout)
}

/// Returns the address in the last line of the quickstart, which is printed before the service starts.
fn explorer(line: &str) -> Option<String> {
    Some(
        line.split_once("http://")?
            .1
            .strip_suffix("/docs")?
            .to_owned(),
    )
}

/// Waits until the service responds: it has written to the log then.
fn wait_until_served(address: &str) {
    HttpClient::new(address.parse().expect("an address"))
        .with_token(TOKEN)
        .get("/v1/pets")
        .assert_status(401);
}

#[test]
fn a_log_that_is_not_read_ends_the_process_at_the_shutdown_timeout_with_an_error() {
    let (_reader, stdout) = full_pipe();
    let mut running = program(stdout).start();
    wait_until_served(&running.wait_for(explorer));

    let exited = running.terminate();

    let error = "animal-store: the log could not be written to standard output within 1s";
    assert_eq!(
        (exited.code, exited.stderr.last().map(String::as_str)),
        (Some(1), Some(error)),
        "{exited:?}"
    );
}

#[test]
fn a_standard_error_that_is_not_read_either_does_not_keep_the_process() {
    let (_reader, stdout) = full_pipe();
    let (reader, stderr) = io::pipe().expect("a pipe");
    let filled = stderr.try_clone().expect("a descriptor");
    let running = program(stdout).stderr(stderr).start();
    let mut lines = lines(reader);
    let address = lines.find_map(|line| explorer(&line));
    wait_until_served(&address.expect("the quickstart"));
    fill(filled);

    let exited = running.terminate();

    assert_eq!(exited.code, Some(1), "{exited:?}");
}

#[test]
fn a_log_that_cannot_be_written_is_reported_once_and_does_not_stop_the_service() {
    let full = File::create("/dev/full").expect("a device");
    // The log is flushed within the timeout on a loaded machine, too.
    let mut running = program(full)
        .env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "30s")
        .start();
    let report = "animal-store: the log cannot be written to standard output: No space left on device (os error 28)";
    assert_eq!(running.wait_for_text(report), "");
    let address = running.wait_for(explorer);
    for _ in 0..10 {
        wait_until_served(&address);
    }

    let exited = running.terminate();

    let reports: Vec<_> = exited
        .stderr
        .iter()
        .filter(|line| line.starts_with("animal-store: "))
        .collect();
    assert_eq!(
        (exited.code, reports),
        (Some(0), vec![&report.to_owned()]),
        "{exited:?}"
    );
}
