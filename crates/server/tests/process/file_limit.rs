//! Limits of the process: a limit of open files that is too low for `http.max_connections`, and core dumps.

use std::net::SocketAddr;

use animal_store_test_servers::{HttpClient, PostgresServer, RawConnection, wait_until};
use serde_json::Value;

use crate::{
    pets::create_request,
    program::{Program, TOKEN, metric},
};

const LIMIT: usize = 400;

/// A program that cannot raise this limit of open files.
fn with_limit(limit: usize, program: Program) -> Program {
    program
        .env("ANIMAL_STORE_HTTP__WORKERS", "2")
        .run_by_shell(&format!(r#"ulimit -n {limit} && exec "$@""#))
}

/// Asserts that the management listener responds. The connections are new.
#[track_caller]
fn assert_managed(management: SocketAddr, ready: u16) {
    for (path, status) in [("/live", 200), ("/ready", ready), ("/metrics", 200)] {
        HttpClient::new(management).get(path).assert_status(status);
    }
}

#[test]
fn clients_cannot_take_the_files_of_other_parts() {
    let server = PostgresServer::start();
    let program = Program::with_postgres(&server.url("postgres"))
        .env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", "1m");
    let mut running = with_limit(LIMIT, program).start();
    let event =
        running.wait_for_event("the limit of open files is too low for http.max_connections");
    assert_eq!(
        (&event["level"], &event["limit"]),
        (&Value::from("WARN"), &LIMIT.into())
    );
    assert!(event["wanted"].as_u64() > Some(10_000), "{event}");
    let max = metric(
        running.management_address(),
        "animal_store_http_connections_limit",
    );
    assert!(
        (20..LIMIT / 2).contains(&max) && event["max_connections"] == max,
        "{event}"
    );
    let (address, management) = (running.address(), running.management_address());

    // Idle connections make room for others.
    let idle: Vec<_> = (0..LIMIT).map(|_| RawConnection::open(address)).collect();
    wait_until(|| metric(management, "animal_store_http_connections_open") == max);
    assert_managed(management, 200);
    HttpClient::new(address)
        .with_token(TOKEN)
        .get("/v1/pets")
        .assert_status(200);
    drop(idle);

    // Those with a request do not: others wait.
    server.pause();
    let mut busy = Vec::new();
    while metric(management, "animal_store_http_requests_in_flight") < max
        || metric(management, "animal_store_http_connections_open") <= max
    {
        // A connection that is still idle can make room for the next one.
        assert!(busy.len() < LIMIT, "no connection waits");
        busy.push(create_request(address, TOKEN, "Rex").begin().unwrap());
    }
    for _ in 0..10 {
        assert_managed(management, 503);
    }
    drop(busy);
    server.resume();
    HttpClient::new(address)
        .with_token(TOKEN)
        .get("/v1/pets")
        .assert_status(200);
    let exited = running.terminate();
    assert_eq!(exited.code, Some(0));
    assert!(
        !exited.output().contains("a connection cannot be accepted"),
        "{exited:?}"
    );
}

#[test]
fn a_limit_that_is_too_low_for_any_connection_ends_the_start() {
    let exited = with_limit(250, Program::with_key()).run();

    assert_eq!(exited.code, Some(1), "{exited:?}");
    assert!(
        exited
            .output()
            .contains("the limit of open files, 250, is too low for any connection"),
        "{exited:?}"
    );
}

/// A core dump would have tokens and private keys.
#[test]
fn no_core_dump_is_written_whatever_the_limit_was() {
    let mut running = Program::with_key()
        .run_by_shell(r#"ulimit -S -c "$(ulimit -H -c)" && exec "$@""#)
        .start();
    running.address();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.pid()));
    let limits = limits.expect("the process runs");
    let core = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max core file size"));
    let core: Vec<_> = core.expect("a limit").split_whitespace().collect();
    assert_eq!(core[..2], ["0", "0"], "{limits}");
}
