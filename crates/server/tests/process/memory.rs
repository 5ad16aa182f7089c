//! Memory that clients hold if they do not read their responses.

use std::{fs, net::SocketAddr};

use animal_store_test_servers::RawConnection;

use crate::{
    program::{Program, Running},
    tls,
};

const CLIENTS: u64 = 200;

#[test]
fn a_client_that_does_not_read_a_file_holds_little_memory() {
    assert_held(Program::with_key().start(), RawConnection::open, 100);
}

#[test]
fn a_client_that_does_not_read_a_file_over_tls_holds_little_memory() {
    let (program, certificates) = tls::program();
    assert_held(program.start(), |address| RawConnection::open_tls(address, &certificates.authority), 150);
}

/// Asserts that each client holds less than this number of KiB.
#[track_caller]
fn assert_held(mut running: Running, connect: impl Fn(SocketAddr) -> RawConnection, max_kib: u64) {
    let address = running.address();
    let open = || {
        let mut client = connect(address);
        client.send("GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: store.example\r\n\r\n");
        client
    };
    // More than a megabyte: without compression, as for every client of this test.
    assert!(open().response().body.len() > 1024 * 1024);
    let before = resident_kib(running.pid());

    let mut clients: Vec<_> = (0..CLIENTS).map(|_| open()).collect();
    for client in &mut clients {
        // The response has started.
        assert!(!client.is_silent_for(RawConnection::TIMEOUT));
    }

    let held = resident_kib(running.pid()).saturating_sub(before) / CLIENTS;
    assert!(held < max_kib, "{held} KiB for each client");
}

/// Resident memory of a process in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
