//! The notifications that a service manager receives (`NOTIFY_SOCKET`), and a start under it.

use std::{os::unix::net::UnixDatagram, path::PathBuf};

use animal_store_test_servers::{HttpClient, RedisSpace, wait_until};
use tempfile::TempDir;

use crate::{
    keys::token_and_id,
    pets::status,
    program::{DEADLINE, Program},
};

/// A service manager that receives notifications.
struct Manager {
    folder: TempDir,
    socket: UnixDatagram,
}

impl Manager {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        socket.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        Self { folder, socket }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("notify")
    }

    fn started(&self, program: Program) -> Program {
        program.env("NOTIFY_SOCKET", self.path().to_str().expect("UTF-8"))
    }

    /// Returns the lines of the next message.
    #[track_caller]
    fn receive(&self) -> Vec<String> {
        let mut buffer = [0; 1024];
        let length = self.socket.recv(&mut buffer).expect("a notification");
        str::from_utf8(&buffer[..length]).expect("UTF-8").lines().map(str::to_owned).collect()
    }

    /// Sends messages until the queue of the socket has no room.
    fn fill_queue(&self) {
        let mut sent = Ok(0);
        while sent.is_ok() {
            // A socket of its own for each, because a sender has a limit of its own.
            let sender = UnixDatagram::unbound().expect("a socket");
            sender.set_nonblocking(true).expect("an option");
            sent = sender.send_to(b"full", self.path());
        }
    }
}

#[test]
fn the_manager_is_notified_of_the_start_and_lets_a_stop_take_five_seconds_longer_than_its_timeout() {
    let manager = Manager::new();
    let mut running = manager.started(Program::with_key()).env("ANIMAL_STORE_SHUTDOWN__TIMEOUT", "90s").start();
    let address = running.address();
    assert_eq!(manager.receive(), ["READY=1".to_owned(), format!("STATUS=listening on {address}")]);

    running.signal("TERM");
    assert_eq!(manager.receive(), ["STOPPING=1", "EXTEND_TIMEOUT_USEC=95000000", "STATUS=shutting down"]);
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn an_empty_variable_is_no_manager() {
    let program = Program::with_key().env("NOTIFY_SOCKET", "").env("LISTEN_FDS", "");
    let mut running = program.env("ANIMAL_STORE_LOG__FILTER", "debug").start();
    running.address();
    let exited = running.terminate();
    assert!(!exited.assert_success().output().contains("service manager"), "{exited:?}");
}

#[test]
fn a_manager_that_does_not_receive_delays_neither_requests_nor_the_end() {
    let manager = Manager::new();
    manager.fill_queue();
    let mut full = manager.started(Program::with_key()).start();
    let missing = Program::with_key().env("NOTIFY_SOCKET", "/missing/notify").env("ANIMAL_STORE_LOG__FILTER", "debug");
    let mut missing = missing.start();
    missing.wait_for_event("the service manager cannot be notified");
    for running in [&mut full, &mut missing] {
        let client = HttpClient::new(running.address());
        for _ in 0..100 {
            assert_eq!(client.get("/v1/pets").status, 401);
        }
    }
    for running in [full, missing] {
        running.terminate().assert_success();
    }
}

#[test]
fn a_start_under_a_manager_prints_no_key_and_logs_how_to_create_one() {
    let (manager, folder) = (Manager::new(), TempDir::new().expect("a folder"));
    let program = || manager.started(Program::in_folder(folder.path())).args(&["--set", "http.workers=1"]);
    // Any address is accepted.
    let mut running = program().args(&["--listen", "0.0.0.0:0"]).start();
    let event = running.wait_for_event("there is no API key: every request gets 401 until this command creates one");
    let command = event["command"].as_str().unwrap();
    assert!(command.ends_with(" --set http.workers=1 keys create --label NAME"), "{command}");
    assert_eq!(event["level"], "WARN");
    let address = ([127, 0, 0, 1], running.address().port()).into();
    assert_eq!(HttpClient::new(address).get("/v1/pets").status, 401);

    let create = Program::in_folder(folder.path()).args(&["keys", "create", "--label", "shop"]).run();
    let (token, _) = token_and_id(&create);
    wait_until(|| status(address, &token) == 200);
    running.terminate().assert_success();

    let mut second = program().start();
    second.address();
    let exited = second.terminate();
    assert!(!exited.output().contains("API key") && exited.stderr.is_empty(), "{exited:?}");
}

#[test]
fn a_start_in_memory_under_a_manager_generates_no_key() {
    let manager = Manager::new();
    let mut running = manager.started(Program::new()).start();
    running.wait_for_event("there is no API key: every request gets 401; set keys.memory.tokens and restart");
    assert_eq!(HttpClient::new(running.address()).get("/v1/pets").status, 401);
    running.terminate().assert_success();
}

#[test]
fn a_start_under_a_manager_with_an_empty_redis_logs_how_to_create_a_key() {
    let (manager, space) = (Manager::new(), RedisSpace::new());
    let mut running = manager.started(Program::with_redis(&space)).start();
    let event = running.wait_for_log(|event| {
        let message = event["message"].as_str().unwrap_or_default();
        message.starts_with("Redis holds no index of API keys: ")
    });
    let message = event["message"].as_str().unwrap();
    assert!(message.ends_with("to create a key: animal-store keys create --label NAME"), "{message}");
    assert_eq!(running.terminate().code, Some(0));
}
