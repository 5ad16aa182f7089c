//! The notifications that a service manager receives (`NOTIFY_SOCKET`).

use std::os::unix::net::UnixDatagram;

use crate::prelude::*;

/// Returns a socket for notifications, its folder, and a program that sends them there.
fn managed() -> (UnixDatagram, TempDir, Program) {
    let folder = new_folder();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let program = Program::with_key().env("NOTIFY_SOCKET", path.to_str().expect("UTF-8"));
    (socket, folder, program)
}

#[test]
fn the_manager_is_notified_of_the_start_and_lets_a_stop_take_five_seconds_longer_than_its_timeout()
{
    let (socket, _folder, program) = managed();
    let receive = || {
        let mut buffer = [0; 1024];
        let length = socket.recv(&mut buffer).expect("a notification");
        let text = str::from_utf8(&buffer[..length]).expect("UTF-8");
        text.trim_end().replace('\n', " ")
    };
    let mut running = program.set("shutdown.timeout", "90s").start();
    let address = running.address();
    assert_eq!(receive(), format!("READY=1 STATUS=listening on {address}"));

    running.signal("TERM");
    let stopping = "STOPPING=1 EXTEND_TIMEOUT_USEC=95000000 STATUS=shutting down";
    assert_eq!(receive(), stopping);
    running.wait().assert_code(0);
}

#[test]
fn a_manager_that_does_not_receive_delays_neither_requests_nor_the_end() {
    let (_socket, folder, full) = managed();
    let path = folder.path().join("notify");
    let send = || {
        // A socket of its own for each, because a sender has a limit of its own.
        let sender = UnixDatagram::unbound().expect("a socket");
        sender.set_nonblocking(true).expect("an option");
        sender.send_to(b"full", &path)
    };
    while send().is_ok() {}
    let with = |socket| {
        let program = Program::with_key().env("LISTEN_FDS", "");
        program.env("NOTIFY_SOCKET", socket)
    };
    // A notification waits for room in the queue. Without the name of a socket, there is no manager.
    for (program, fails) in [
        (full, false),
        (with("/missing/notify"), true),
        (with(""), false),
    ] {
        let mut running = program.set("log.filter", "debug").start();
        let client = HttpClient::new(running.address());
        for _ in 0..100 {
            client.get("/v1/pets").assert_status(401);
        }
        let exited = running.terminate();
        let output = exited.assert_success().output();
        let has_failed = output.contains("the service manager cannot be notified");
        assert_eq!(has_failed, fails, "{output}");
    }
}
