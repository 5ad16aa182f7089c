//! Memory of the service if clients do not read their responses, and of commands over many pets.

use std::{cell::Cell, io::BufWriter};

use tempfile::NamedTempFile;

use crate::{
    copy_store::{MEMORY, copy},
    prelude::*,
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
    assert_held(
        program.start(),
        |address| RawConnection::open_tls(address, &certificates.authority),
        150,
    );
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
    let resident_kib = || memory_kib(&running, "VmRSS:").expect("its memory");
    let before = resident_kib();

    let mut clients: Vec<_> = (0..CLIENTS).map(|_| open()).collect();
    for client in &mut clients {
        client.assert_response_begins();
    }

    let held = resident_kib().saturating_sub(before) / CLIENTS;
    assert!(held < max_kib, "{held} KiB for each client");
}

/// A value in the status of a process in KiB. `None` if the process has exited.
fn memory_kib(running: &Running, name: &str) -> Option<u64> {
    let status = running.proc("status");
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    let number = value.trim().trim_end_matches(" kB").parse();
    Some(number.expect("a number"))
}

/// Runs a program until it exits, and returns its greatest memory in KiB that is seen, without what is mapped of files.
#[track_caller]
fn peak_kib(program: Program) -> u64 {
    let running = program.start();
    let peak = Cell::new(0);
    wait_until(|| {
        let kib = memory_kib(&running, "RssAnon:");
        peak.set(peak.get().max(kib.unwrap_or_default()));
        kib.is_none()
    });
    running.wait().assert_code(0);
    peak.get()
}

/// Asserts that many pets take little more memory than few, although they have at least 28 MB more. Buffers and the
/// allocator change the memory by 18 MB.
#[track_caller]
fn assert_same_peak([few, many]: [usize; 2], peak_kib: impl Fn(usize) -> u64) {
    let few = peak_kib(few);
    let many = peak_kib(many);
    assert!(many < few + 20 * 1024, "{few} KiB, and {many} KiB for many");
}

/// A store with this many pets, each with a name of 1,020 bytes.
fn store_of(pets: usize) -> Store {
    let store = Store::sqlite();
    store.import(&odd_pets(1));
    store.execute(&format!(
        "WITH RECURSIVE number (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number WHERE n < {pets})
        INSERT INTO pets SELECT n, replace(printf('%.255c', 'x'), 'x', '\u{1f415}'), 1, NULL, 0 FROM number"
    ));
    store
}

#[test]
fn an_export_holds_a_page_of_pets() {
    // The timeout of a page in a file cannot be configured for a busy machine.
    assert_same_peak([2_000, 30_000], |pets| {
        let store = Store::postgres();
        let name = "repeat('\u{1f415}', 255)";
        let rows = format!("SELECT {name}, 1 FROM generate_series(1, {pets})");
        store.execute(&format!("INSERT INTO pets (name, category_id) {rows}"));
        let null = File::create("/dev/null").expect("a device");
        peak_kib(store.program().args("pets export").stdout(null))
    });
}

#[test]
fn a_copy_holds_a_page_of_pets() {
    assert_same_peak([2_000, 30_000], |pets| {
        let from = store_of(pets);
        let to = Store::sqlite();
        peak_kib(copy((&from, MEMORY), (&to, MEMORY)))
    });
}

#[test]
fn an_import_holds_some_lines() {
    let note = "x".repeat(15_000);
    assert_same_peak([300, 2_300], |pets| {
        let mut file = BufWriter::new(NamedTempFile::new().expect("a file"));
        for number in 0..pets {
            let line = format!(r#"{{"name":"{number}","categoryId":1,"note":"{note}"}}"#);
            writeln!(file, "{line}").expect("written");
        }
        let file = file.into_inner().expect("written");
        let store = Store::sqlite();
        let import = store.program().args("pets import --create");
        peak_kib(import.arg(file.path()))
    });
}
