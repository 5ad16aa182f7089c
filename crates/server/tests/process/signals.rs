//! Shutdown by signals. Without the signal, a timeout or a delay that is longer than the test would apply.

use std::{
    fs::OpenOptions,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::{HttpClient, PostgresServer, wait_until};

use crate::{
    pets::{begin_create, create_request, status},
    program::{Program, Running, TOKEN, metric, terminal},
};

/// A program with a drain delay, which may be five minutes.
fn start_with_drain_delay(delay: &str) -> Running {
    let program = Program::with_key().env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "10m");
    program
        .env("ANIMAL_STORE_SHUTDOWN__DRAIN_DELAY", delay)
        .start()
}

/// Sends the first signal, and the second one as soon as it counts: after a second. There is no event to wait for.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the rule is a time")]
fn signal_twice(running: &mut Running, signals: [&str; 2]) {
    running.signal(signals[0]);
    running.wait_for_event("shutting down");
    thread::sleep(Duration::from_secs(1));
    running.signal(signals[1]);
}

#[test]
fn a_second_signal_ends_the_process_at_once_with_an_error_only_if_requests_are_in_flight() {
    let server = PostgresServer::start();
    for signals in [["TERM", "INT"], ["INT", "TERM"]] {
        let mut running = Program::with_postgres(&server.url("postgres"))
            .env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "1m")
            .env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "2m")
            .start();
        let address = running.address();
        let management = running.management_address();
        server.pause();
        let hanging = create_request(address, TOKEN, "Tom").begin().unwrap();
        wait_until(|| metric(management, "animal_store_http_requests_in_flight") == 1);
        signal_twice(&mut running, signals);
        running.wait().assert_error(1, &["signal", "cut off"]);
        drop(hanging);
        server.resume();
    }
    let mut running = start_with_drain_delay("5m");
    running.address();
    signal_twice(&mut running, ["TERM", "INT"]);
    running.wait().assert_success();
}

#[test]
fn signals_that_arrive_together_are_one_and_requests_in_flight_are_completed() {
    let mut running = Program::with_key()
        .env("ANIMAL_STORE_LOG__FILTER", "debug")
        .start();
    let mut connection = begin_create(running.address(), TOKEN);
    connection.response().assert_status(100);
    // Both arrive as soon as the process continues.
    for signal in ["STOP", "TERM", "INT", "CONT"] {
        running.signal(signal);
    }
    running.wait_for_event("a second signal was ignored: it arrived within a second of the first");
    connection.send(r#"{"name":"Rex","categoryId":1}"#);
    assert_eq!(connection.response().status, 201);
    running.wait().assert_success();
}

#[test]
fn sigterm_waits_for_the_drain_delay_while_ready_is_503_and_sigint_skips_it() {
    let mut running = start_with_drain_delay("3s");
    let (address, management) = (running.address(), running.management_address());
    let start = Instant::now();

    running.signal("TERM");
    running.wait_for_event("shutting down");
    assert_eq!(HttpClient::new(management).get("/ready").status, 503);
    assert_eq!(status(address, TOKEN), 200);
    running.wait().assert_success();
    assert!(
        start.elapsed() >= Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );

    let mut running = start_with_drain_delay("5m");
    running.address();
    running.signal("INT");
    running.wait().assert_success();
}

#[test]
fn a_signal_during_the_start_ends_it_gracefully() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::TempDir::new().unwrap();
        let pipe = folder.path().join("animal-store.toml");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let running = Program::with_key()
            .args(&["--config", pipe.to_str().unwrap()])
            .start();
        // Opening a named pipe waits for its reader: the program reads its configuration, and gets none.
        let configuration = OpenOptions::new().write(true).open(&pipe).unwrap();
        running.signal(signal);
        assert!(running.wait().assert_success().stdout.is_empty());
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
fn sighup_ends_the_process_gracefully_if_the_leader_of_its_session_has_ended_and_its_terminal_stays()
 {
    let (_shown, stdin) = terminal();
    // The leader is the process that the test has started. A job in the background has another standard input.
    let leader = r#"exec setsid --ctty bash -c '"$@" <&3 & wait' bash "$@" 3<&0"#;
    let program = Program::with_key().run_by_shell(leader);
    let mut running = program
        .env("PATH", "/usr/bin:/bin")
        .standard_input(stdin)
        .start();
    running.address();
    running.signal("KILL");
    running.wait_for_event("all requests were completed");
}

#[test]
fn sighup_of_another_process_reloads_if_the_session_has_its_leader() {
    let (_shown, stdin) = terminal();
    let leader = r#"exec setsid --ctty "$@""#;
    let program = Program::with_key().run_by_shell(leader);
    let mut running = program
        .env("PATH", "/usr/bin:/bin")
        .standard_input(stdin)
        .start();
    running.address();
    running.signal("HUP");
    running.wait_for_event("SIGHUP: the configuration has not changed");
    running.terminate().assert_success();
}

/// With a create in PostgreSQL that gets no response, the process ends at the shutdown timeout, not at the one of
/// PostgreSQL. Without a request, nothing waits for PostgreSQL.
#[test]
fn while_postgresql_is_frozen_sigterm_ends_the_process_by_its_deadline() {
    let server = PostgresServer::start();
    let program = |timeout: &str| {
        let program = Program::with_postgres(&server.url("postgres"))
            .env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", timeout);
        let mut running = program
            .env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "1m")
            .start();
        let address = running.address();
        create_request(address, TOKEN, "Rex")
            .send()
            .assert_status(201);
        (running, address)
    };
    let (idle, _) = program("2m");
    let (mut busy, address) = program("2s");
    let in_flight = "animal_store_http_requests_in_flight";
    let management = busy.management_address();
    server.pause();
    let mut hanging = create_request(address, TOKEN, "Tom").begin().unwrap();
    wait_until(|| metric(management, in_flight) == 1);

    busy.terminate()
        .assert_error(1, &["shutdown timeout", "cut off: 1"]);
    hanging.assert_closed();
    let start = Instant::now();
    assert_eq!(idle.terminate().code, Some(0));
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    server.resume();
}
