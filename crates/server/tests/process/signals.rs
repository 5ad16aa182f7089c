//! Shutdown by signals. Without the signal, a timeout or a delay that is longer than the test would apply.

use std::{fs::OpenOptions, thread};

use crate::prelude::*;

/// The shell scripts need the programs on it.
const PATH: &str = "/usr/bin:/bin";

/// A program with a drain delay, which may be five minutes.
fn start_with_drain_delay(delay: &str) -> Running {
    let program = Program::with_key().set("shutdown.timeout", "10m");
    program.set("shutdown.drain_delay", delay).start()
}

/// Starts a program over a server of PostgreSQL that may not respond for a minute.
fn start_with_postgres(server: &PostgresServer, shutdown_timeout: &str) -> Running {
    Program::with_postgres(&server.url())
        .set("storage.postgres.timeout", "1m")
        .set("shutdown.timeout", shutdown_timeout)
        .start()
}

/// Suspends the server, sends a create, and returns it when it is in flight.
fn hang(server: &PostgresServer, running: &mut Running) -> RawConnection {
    let management = running.management_address();
    server.pause();
    let hanging = create_request(running.address(), "Tom").begin();
    wait_until(|| metric(management, "animal_store_http_requests_in_flight") == 1);
    hanging
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
        let mut running = start_with_postgres(&server, "2m");
        let hanging = hang(&server, &mut running);
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
    let mut running = Program::with_key().set("log.filter", "debug").start();
    let mut connection = begin_create(running.address());
    connection.response().assert_status(100);
    // Both arrive as soon as the process continues.
    for signal in ["STOP", "TERM", "INT", "CONT"] {
        running.signal(signal);
    }
    running.wait_for_event("a second signal was ignored: it arrived within a second of the first");
    connection.send(r#"{"name":"Rex","categoryId":1}"#);
    connection.response().assert_status(201);
    running.wait().assert_success();
}

#[test]
fn sigterm_waits_for_the_drain_delay_while_ready_is_503_and_sigint_skips_it() {
    let mut draining = start_with_drain_delay("5m");
    draining.address();
    draining.signal("TERM");
    draining.wait_for_event("shutting down");
    draining.management().get("/ready").assert_status(503);
    assert_eq!(status(draining.address(), TOKEN), 200);

    let mut running = start_with_drain_delay("1s");
    running.address();
    let start = Instant::now();
    running.terminate().assert_success();
    let elapsed = start.elapsed();
    assert!(elapsed >= Duration::from_secs(1), "{elapsed:?}");

    let mut running = start_with_drain_delay("5m");
    running.address();
    running.signal("INT");
    running.wait().assert_success();
}

#[test]
fn a_signal_during_the_start_ends_it_gracefully() {
    for signal in ["TERM", "INT"] {
        let folder = new_folder();
        let pipe = folder.path().join("animal-store.toml");
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo is installed").success());
        let program = Program::with_key().args("--config").arg(&pipe);
        let running = program.start();
        // Opening a named pipe waits for its reader: the program reads its configuration, and gets none.
        let configuration = OpenOptions::new().write(true).open(&pipe).expect("a pipe");
        running.signal(signal);
        let exited = running.wait();
        assert!(exited.assert_success().stdout.is_empty(), "{exited:?}");
        drop(configuration);
    }
}

#[test]
fn sighup_ends_the_process_gracefully_if_its_terminal_has_hung_up() {
    let (shown, stdin) = terminal();
    let mut running = Program::with_key().standard_input(stdin).start();
    running.address();
    drop(shown);
    running.signal("HUP");
    running.wait_for_event("all requests were completed");
    running.wait().assert_success();
}

/// Starts a program by a script that makes a session on a terminal, which this test keeps open.
fn start_in_session(script: &str) -> (Running, fs::File) {
    let (shown, stdin) = terminal();
    let program = Program::with_key().run_by_shell(script).env("PATH", PATH);
    let mut running = program.standard_input(stdin).start();
    running.address();
    (running, shown)
}

#[test]
fn sighup_ends_the_process_if_the_leader_of_its_session_has_ended_and_its_terminal_stays() {
    // The leader is the process that the test has started. A job in the background has another standard input.
    let script = r#"exec setsid --ctty bash -c '"$@" <&3 & wait' bash "$@" 3<&0"#;
    let (mut running, _shown) = start_in_session(script);
    running.signal("KILL");
    running.wait_for_event("all requests were completed");
}

#[test]
fn sighup_of_another_process_reloads_if_the_session_has_its_leader() {
    let (mut running, _shown) = start_in_session(r#"exec setsid --ctty "$@""#);
    running.signal("HUP");
    running.wait_for_event("SIGHUP: no setting has changed");
    running.terminate().assert_success();
}

/// With a create in PostgreSQL that gets no response, the process ends at the shutdown timeout, not at the one of
/// PostgreSQL. Without a request, nothing waits for PostgreSQL.
#[test]
fn while_postgresql_is_frozen_sigterm_ends_the_process_by_its_deadline() {
    let server = PostgresServer::start();
    let mut idle = start_with_postgres(&server, "2m");
    let mut busy = start_with_postgres(&server, "2s");
    for running in [&mut idle, &mut busy] {
        let created = create_request(running.address(), "Rex").send();
        created.assert_status(201);
    }
    let mut hanging = hang(&server, &mut busy);

    let exited = busy.terminate();
    exited.assert_error(1, &["shutdown timeout", "cut off: 1"]);
    hanging.assert_closed();
    let start = Instant::now();
    idle.terminate().assert_code(0);
    let elapsed = start.elapsed();
    assert!(elapsed < Duration::from_mins(1), "{elapsed:?}");
    server.resume();
}
