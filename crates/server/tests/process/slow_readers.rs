//! Memory that clients hold if they do not read their responses.

use std::fs;

use animal_store_test_servers::RawConnection;

use crate::program::Program;

const CLIENTS: u64 = 200;

#[test]
fn a_client_that_does_not_read_a_file_holds_little_memory() {
    let mut running = Program::with_key().start();
    let address = running.address();
    let request = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: store.example\r\n\r\n";
    let mut whole = RawConnection::open(address);
    whole.send(request);
    // More than a megabyte: without compression, as for every client of this test.
    assert!(whole.response().body.len() > 1024 * 1024);
    let before = resident_kib(running.pid());

    let mut clients: Vec<_> = (0..CLIENTS).map(|_| RawConnection::open(address)).collect();
    for client in &mut clients {
        client.send(request);
        // The response has started.
        assert!(!client.is_silent_for(RawConnection::TIMEOUT));
    }

    let held = resident_kib(running.pid()).saturating_sub(before) / CLIENTS;
    assert!(held < 100, "{held} KiB for each client");
}

/// Resident memory of a process in KiB.
pub(crate) fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
