//! Memory of the service if clients do not read their responses, and of commands over many pets.

use std::{fs, net::SocketAddr};

use animal_store_test_servers::RawConnection;
use nix::sys::resource::{UsageWho, getrusage};

use crate::{
    copy_store::{MEMORY, copy},
    program::{Program, Running},
    store::Store,
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

/// Exports this many pets with names of 1,020 bytes, imports the file and copies the store. Returns the largest peak of
/// resident memory in KiB of all processes that this test has run.
#[track_caller]
fn peak_of_commands(pets: usize) -> i64 {
    let [store, imported, copied] = [(); 3].map(|()| Store::sqlite());
    store.import(r#"{"name":"Rex","categoryId":1}"#);
    store.execute(&format!(
        "WITH RECURSIVE number (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number WHERE n < {pets})
        INSERT INTO pets SELECT n, replace(printf('%.255c', 'x'), 'x', '\u{1f415}'), 1, NULL, 0 FROM number"
    ));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pets.ndjson");
    let file = file.to_str().expect("UTF-8");
    assert_eq!(store.succeed(&["pets", "export", file]), [format!("pets: {pets}")]);
    imported.succeed(&["pets", "import", file, "--create"]);
    copy((&store, MEMORY), (&copied, MEMORY)).run().assert_success();
    getrusage(UsageWho::RUSAGE_CHILDREN).expect("the usage").max_rss()
}

#[test]
fn export_import_and_copy_hold_a_part_of_the_pets() {
    let few = peak_of_commands(3_000);
    let many = peak_of_commands(30_000);
    assert!(many - few < 12 * 1024, "27 MB more of pets take {} KiB more", many - few);
}
