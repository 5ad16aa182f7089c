//! Shutdown by signals. Upper bounds are far below the timeouts that would apply without the signal.

use std::{
    fs::OpenOptions,
    net::SocketAddr,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::{HttpClient, RawConnection};

use crate::{
    pets::status,
    program::{Line, Program, Running, TOKEN, terminal},
};

const BODY: &str = r#"{"name":"Rex","categoryId":1}"#;

/// Sends the head of a create and waits until the request is in flight. The body is still to come.
#[track_caller]
fn begin_request(address: SocketAddr) -> RawConnection {
    let mut connection = RawConnection::open(address);
    connection.send(format!(
        "POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        BODY.len()
    ));
    assert_eq!(connection.response().head, "HTTP/1.1 100 Continue\r\n\r\n");
    connection
}

#[test]
fn a_signal_shuts_an_idle_service_down() {
    for signal in ["TERM", "INT"] {
        let mut running = Program::with_key().start();
        running.address();
        running.signal(signal);
        running.wait().assert_success();
    }
}

/// A program with a drain delay, which may be half a minute.
fn start_with_drain_delay(delay: &str) -> Running {
    let program = Program::with_key().env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "1m");
    program.env("ANIMAL_STORE_SHUTDOWN__DRAIN_DELAY", delay).start()
}

/// Waits for a second after the first signal. There is no event to wait for: the time is the rule.
#[expect(clippy::disallowed_methods, reason = "the rule is a time")]
fn wait_until_a_signal_counts() {
    thread::sleep(Duration::from_secs(1));
}

/// Sends the first signal, and the second one as soon as it counts.
#[track_caller]
fn signal_twice(running: &mut Running, signals: [&str; 2]) {
    running.signal(signals[0]);
    running.wait_for_event("shutting down");
    wait_until_a_signal_counts();
    running.signal(signals[1]);
}

#[test]
fn a_second_signal_ends_the_process_at_once_with_an_error_if_requests_are_in_flight() {
    for signals in [["TERM", "TERM"], ["INT", "INT"], ["TERM", "INT"]] {
        let mut running = Program::with_key().start();
        let hanging = begin_request(running.address());

        signal_twice(&mut running, signals);

        // The wait is shorter than the shutdown timeout.
        running.wait().assert_error(1, &["signal", "cut off"]);
        drop(hanging);
    }
}

#[test]
fn a_second_signal_ends_a_process_without_requests_in_flight_gracefully() {
    let mut running = start_with_drain_delay("25s");
    running.address();

    signal_twice(&mut running, ["TERM", "INT"]);

    // The wait is shorter than the drain delay.
    running.wait().assert_success();
}

/// A program with a request in flight that has ignored the second of these signals. On a busy machine, that signal may
/// arrive after more than a second, and end the program. Then another one is started.
#[track_caller]
fn with_ignored_signal(signals: [&str; 2]) -> (Running, RawConnection) {
    const IGNORED: &str = "a second signal was ignored: it arrived within a second of the first";
    for _ in 0..10 {
        let mut running = Program::with_key().env("ANIMAL_STORE_LOG__FILTER", "debug").start();
        let connection = begin_request(running.address());
        let start = Instant::now();
        running.signal(signals[0]);
        running.wait_for_event("shutting down");
        running.signal(signals[1]);
        let is_ignored = running.wait_for(|line| match line {
            Line::Out(text) => text.contains(IGNORED).then_some(true),
            Line::Err(text) => text.contains("signal").then_some(false),
        });
        if is_ignored {
            return (running, connection);
        }
        assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    }
    panic!("no second signal arrives within a second of the first");
}

#[test]
fn a_second_signal_within_a_second_of_the_first_is_ignored() {
    let (running, mut connection) = with_ignored_signal(["TERM", "INT"]);
    connection.send(BODY);
    assert_eq!(connection.response().status, 201);
    running.wait().assert_success();
}

#[test]
fn a_third_signal_ends_the_process_if_the_second_was_ignored() {
    let (running, hanging) = with_ignored_signal(["TERM", "TERM"]);

    wait_until_a_signal_counts();
    running.signal("TERM");

    // The wait is shorter than the shutdown timeout.
    running.wait().assert_error(1, &["signal", "cut off"]);
    drop(hanging);
}

#[test]
fn sigterm_waits_for_the_drain_delay_while_ready_is_503() {
    let mut running = start_with_drain_delay("6s");
    let (address, management) = (running.address(), running.management_address());
    let start = Instant::now();

    running.signal("TERM");
    running.wait_for_event("shutting down");

    assert_eq!(HttpClient::new(management).get("/ready").status, 503);
    assert_eq!(status(address, TOKEN), 200);
    running.wait().assert_success();
    assert!(start.elapsed() >= Duration::from_secs(6), "{:?}", start.elapsed());
}

#[test]
fn sigint_skips_the_drain_delay() {
    let mut running = start_with_drain_delay("25s");
    running.address();
    running.signal("INT");
    // The wait is shorter than the drain delay.
    running.wait().assert_success();
}

#[test]
fn a_signal_during_the_start_ends_it_gracefully() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::TempDir::new().unwrap();
        let pipe = folder.path().join("animal-store.toml");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let running = Program::with_key().args(&["--config", pipe.to_str().unwrap()]).start();
        // Opening a named pipe waits for its reader: the program reads its configuration, and gets none.
        let configuration = OpenOptions::new().write(true).open(&pipe).unwrap();

        running.signal(signal);

        let exited = running.wait();
        exited.assert_success();
        assert!(exited.stdout.is_empty(), "{exited:?}");
        drop(configuration);
    }
}

#[test]
fn sighup_ends_the_process_gracefully_if_its_terminal_has_hung_up() {
    let (shown, stdin) = terminal();
    let mut running = Program::with_key().standard_input(stdin).start();
    running.address();
    running.signal("HUP");
    running.wait_for_event("SIGHUP: the configuration has not changed");

    drop(shown);
    running.signal("HUP");
    running.wait_for_event("all requests were completed");
    running.wait().assert_success();
}

#[test]
fn a_request_that_outlasts_the_shutdown_timeout_is_cut_off() {
    let mut running = Program::with_key().env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "1s").start();
    let mut hanging = begin_request(running.address());

    running.terminate().assert_error(1, &["shutdown timeout", "cut off: 1"]);
    // The connection may be reset or closed, but nothing is sent.
    hanging.assert_closed();
}
