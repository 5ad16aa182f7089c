//! Limits of the process: of open files, of the size of files, of threads, and of core dumps.

use std::os::unix::fs::chown;

use nix::unistd::geteuid;

use crate::prelude::*;

const LIMIT: usize = 400;

/// A program that cannot raise this limit of open files.
fn with_limit(limit: usize, program: Program) -> Program {
    let script = format!(r#"ulimit -n {limit} && exec "$@""#);
    program.set("http.workers", "2").run_by_shell(&script)
}

/// Asserts that the management listener responds. The connections are new. On a busy machine, a probe of the storage can
/// take too long.
#[track_caller]
fn assert_managed(management: &HttpClient, ready: u16) {
    for path in ["/live", "/metrics"] {
        management.get(path).assert_status(200);
    }
    wait_until(|| management.get("/ready").status == ready);
}

#[test]
fn clients_cannot_take_the_files_of_other_parts() {
    let server = PostgresServer::start();
    let program = Program::with_postgres(&server.url());
    let program = program.set("storage.postgres.timeout", "1m");
    let mut running = with_limit(LIMIT, program).start();
    let event =
        running.wait_for_event("the limit of open files is too low for http.max_connections");
    let address = running.address();
    let management = running.management();
    let management_address = running.management_address();
    let value = |name| metric(management_address, &format!("animal_store_http_{name}"));
    let max = value("connections_limit");
    let expected = json!({"level": "WARN", "limit": LIMIT, "max_connections": max});
    assert_members(&event, &expected);
    assert!(event["wanted"].as_u64() > Some(10_000), "{event}");
    assert!((20..LIMIT / 2).contains(&max), "{event}");
    let client = running.client();

    // Idle connections make room for others.
    let idle: Vec<_> = (0..LIMIT).map(|_| RawConnection::open(address)).collect();
    wait_until(|| value("connections_open") == max);
    assert_managed(&management, 200);
    client.get("/v1/pets").assert_status(200);
    drop(idle);

    // Those with a request do not: others wait.
    server.pause();
    let mut busy = Vec::new();
    while value("requests_in_flight") < max || value("connections_open") <= max {
        // A connection that is still idle can make room for the next one.
        assert!(busy.len() < LIMIT, "no connection waits");
        busy.push(create_request(address, "Rex").begin());
    }
    for _ in 0..3 {
        assert_managed(&management, 503);
    }
    drop(busy);
    server.resume();
    client.get("/v1/pets").assert_status(200);
    let exited = running.terminate();
    exited
        .assert_code(0)
        .assert_lacks("a connection cannot be accepted");
}

#[test]
fn a_limit_that_is_too_low_for_any_connection_ends_the_start() {
    let exited = with_limit(250, Program::with_key()).run();
    let reason = "the limit of open files, 250, is too low for any connection";
    exited.assert_code(1).assert_has(reason);
}

#[test]
fn a_file_that_may_not_grow_refuses_creates_and_does_not_end_the_service() {
    let store = Store::sqlite();
    let program = store.program();
    let mut running = program.run_by_shell(r#"ulimit -f 300; exec "$@""#).start();
    let address = running.address();
    let mut creates = (0..1000).map(|_| create_request(address, "Rex").send().status);
    assert!(creates.any(|status| status == 503));
    assert_eq!(status(address, TOKEN), 200);
    running.terminate().assert_code(0);
}

/// A limit of threads does not bind root.
const USER: u32 = 65_531;

#[test]
fn a_process_that_gets_no_new_thread_for_a_moment_responds_then_and_later() {
    let folder = TempDir::new().expect("a folder");
    let mut user = String::from("env");
    if geteuid().is_root() {
        chown(folder.path(), Some(USER), Some(USER)).expect("root may");
        user = format!("setpriv --reuid {USER} --regid {USER} --clear-groups");
    }
    let script = format!(r#"exec {user} "$@""#);
    let program = |line| {
        let program = Program::in_folder(folder.path()).args(line);
        program.run_by_shell(&script)
    };
    let key = NewKey::printed(&program("keys create --create --label shop").run());
    let mut running = program("serve").set("http.workers", "1").start();
    let client = HttpClient::new(running.address()).with_token(&key.token);
    let management = running.management();
    let pid = running.pid();
    let pet = r#"{"name":"Rex","categoryId":1}"#;
    let limits = running.proc("limits");
    let mut lines = limits.lines();
    let before = lines.find_map(|line| line.strip_prefix("Max processes"));
    let before = before.and_then(|limits| limits.split_whitespace().next());
    for limit in ["1", before.expect("a limit")] {
        let line = format!("exec {user} prlimit --pid {pid} --nproc={limit}:");
        let limited = Command::new("sh").args(["-c", &line]).status();
        assert!(limited.expect("it runs").success());
        client.get("/v1/pets").assert_status(200);
        let create = client.request("POST", "/v1/pets").json(pet);
        create.send().assert_status(201);
        wait_until(|| management.get("/ready").status == 200);
    }
    running.terminate().assert_code(0).assert_lacks("panic");
}

/// A core dump would have tokens and private keys. A program of `core_pattern` gets one despite a limit of 0.
#[test]
fn no_core_dump_is_written_whatever_the_limit_was() {
    let script = r#"ulimit -S -c "$(ulimit -H -c)" && exec "$@""#;
    let mut running = Program::with_key().run_by_shell(script).start();
    running.address();
    let limits = running.proc("limits");
    let mut lines = limits.lines();
    let core = lines.find_map(|line| line.strip_prefix("Max core file size"));
    let core: Vec<_> = core.expect("a limit").split_whitespace().collect();
    assert_eq!(core[..2], ["1", "1"], "{limits}");
}
