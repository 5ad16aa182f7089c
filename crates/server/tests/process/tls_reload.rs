//! Certificates are replaced while the service runs.

use std::{fs, net::SocketAddr, os::unix::fs::symlink, path::PathBuf, time::UNIX_EPOCH};

use animal_store_test_servers::{Certificates, RawConnection};
use serde_json::Value;

use crate::{
    program::{Program, Running},
    tls::{self, GET, s_client},
};

const REPLACED: &str = "the TLS certificate was replaced";
const UNUSABLE: &str = "the files of http.tls cannot be used, the certificate in use stays";

/// A program with a copy of its first authority, and a connection that was opened with the first certificate.
struct Replaced {
    running: Running,
    address: SocketAddr,
    folder: PathBuf,
    first_authority: PathBuf,
    connection: RawConnection,
}

impl Replaced {
    fn start() -> Self {
        let (program, certificates) = tls::program();
        let first_authority = program.directory().join("first-authority.pem");
        fs::copy(&certificates.authority, &first_authority).expect("a file");
        let folder = program.directory().to_owned();
        let mut running = program.start();
        let address = running.address();
        let mut connection = RawConnection::open_tls(address, &first_authority);
        connection.send(GET);
        connection.response().assert_status(200);
        Self { running, address, folder, first_authority, connection }
    }

    /// Asserts which authority has signed the certificate of new connections, and that the open one goes on.
    #[track_caller]
    fn assert_first(&mut self, is_first: bool) {
        let second = self.folder.join("authority.pem");
        let authority = if is_first { &self.first_authority } else { &second };
        let output = s_client(self.address, authority, &[]);
        assert!(output.contains("HTTP/1.1 200 OK"), "{output}");
        self.connection.send(GET);
        self.connection.response().assert_status(200);
    }
}

#[test]
fn sighup_replaces_the_certificate() {
    let mut replaced = Replaced::start();
    Certificates::make(&replaced.folder);
    replaced.running.signal("HUP");
    let event = replaced.running.wait_for_event(REPLACED);
    assert_eq!((&event["level"], &event["expires"]), (&"INFO".into(), &"4096-01-01T00:00:00Z".into()), "{event}");
    replaced.assert_first(false);
}

#[test]
fn a_link_to_another_folder_is_noticed() {
    let program = Program::with_key();
    let folder = program.directory().to_owned();
    let [first, second] = ["first", "second"].map(|name| {
        let path = folder.join(name);
        fs::create_dir(&path).expect("a folder");
        (Certificates::make(&path).authority, path)
    });
    symlink(&first.1, folder.join("data")).expect("a link");
    let mut running = program
        .env("ANIMAL_STORE_HTTP__TLS__CERT_FILE", "data/server.pem")
        .env("ANIMAL_STORE_HTTP__TLS__KEY_FILE", "data/server-key.pem")
        .start();
    let address = running.address();
    assert!(s_client(address, &first.0, &[]).contains("HTTP/1.1 200 OK"));

    symlink(&second.1, folder.join("new")).expect("a link");
    fs::rename(folder.join("new"), folder.join("data")).expect("renamed");
    running.wait_for_event(REPLACED);
    assert!(s_client(address, &second.0, &[]).contains("HTTP/1.1 200 OK"));
}

#[test]
fn a_broken_pair_keeps_the_certificate_and_is_logged_once() {
    let mut replaced = Replaced::start();
    let key = replaced.folder.join("server-key.pem");
    fs::copy(replaced.folder.join("client-key.pem"), &key).expect("a file");
    let event = replaced.running.wait_for_event(UNUSABLE);
    let reason = "server-key.pem is not the private key of server.pem";
    assert_eq!((&event["level"], &event["reason"]), (&"ERROR".into(), &reason.into()), "{event}");
    replaced.assert_first(true);

    // SIGHUP is refused as a whole.
    replaced.running.signal("HUP");
    let event = replaced.running.wait_for_event("SIGHUP: the configuration is invalid, nothing changes");
    assert!(event["reason"].as_str().is_some_and(|text| text.contains(reason)), "{event}");
    replaced.assert_first(true);

    Certificates::make(&replaced.folder);
    replaced.running.wait_for_event(REPLACED);
    replaced.assert_first(false);
    let events = replaced.running.terminate().events();
    assert_eq!(events.iter().filter(|event| event["message"] == UNUSABLE).count(), 1, "{events:?}");
}

#[test]
fn sighup_warns_once_about_a_certificate_that_has_expired() {
    let mut replaced = Replaced::start();
    Certificates::make_until(&replaced.folder, UNIX_EPOCH);
    replaced.running.signal("HUP");
    replaced.running.wait_for_event(REPLACED);
    let events = replaced.running.terminate().events();
    let warns = |event: &&Value| event["level"] == "WARN" && event["message"].to_string().contains("has expired");
    assert_eq!(events.iter().filter(warns).count(), 1, "{events:?}");
}
