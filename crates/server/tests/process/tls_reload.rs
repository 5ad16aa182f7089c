//! Certificates are replaced while the service runs.

use std::{fs, net::SocketAddr, os::unix::fs::symlink, path::PathBuf, time::UNIX_EPOCH};

use animal_store_test_servers::{Certificates, RawConnection};

use crate::{
    program::{Exited, Running},
    tls::{self, GET, has_response, s_client},
};

const REPLACED: &str = "the TLS certificate was replaced";
const UNUSABLE: &str = "the files of http.tls cannot be used, the certificate in use stays";

/// A program whose certificates are in a folder that a link leads to, a copy of its first authority, and a connection
/// that was opened with the first certificate.
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
        let folder = program.directory().to_owned();
        let first_authority = folder.join("first-authority.pem");
        fs::copy(&certificates.authority, &first_authority).expect("a file");
        symlink(".", folder.join("data")).expect("a link");
        let files = program.env("ANIMAL_STORE_HTTP__TLS__CERT_FILE", "data/server.pem");
        let mut running = files
            .env("ANIMAL_STORE_HTTP__TLS__KEY_FILE", "data/server-key.pem")
            .start();
        let address = running.address();
        let connection = RawConnection::open_tls(address, &first_authority);
        let mut replaced = Self {
            running,
            address,
            folder,
            first_authority,
            connection,
        };
        replaced.assert_first(true);
        replaced
    }

    /// Asserts which authority has signed the certificate of new connections, and that the open one goes on.
    #[track_caller]
    fn assert_first(&mut self, is_first: bool) {
        let second = self.folder.join("data/authority.pem");
        let authority = if is_first {
            &self.first_authority
        } else {
            &second
        };
        assert!(has_response(&s_client(self.address, authority, &[])));
        self.connection.send(GET);
        self.connection.response().assert_status(200);
    }
}

#[track_caller]
fn assert_once(exited: &Exited, level: &str, text: &str) {
    let events = exited.events();
    let found = events
        .iter()
        .filter(|event| event["level"] == level && event["message"].to_string().contains(text));
    assert_eq!(found.count(), 1, "{events:?}");
}

#[test]
fn a_renewed_certificate_is_used_and_one_that_has_expired_causes_one_warning() {
    let mut replaced = Replaced::start();
    Certificates::make(&replaced.folder);
    let event = replaced.running.wait_for_event(REPLACED);
    assert_eq!(
        (&event["level"], &event["expires"]),
        (&"INFO".into(), &"4096-01-01T00:00:00Z".into()),
        "{event}"
    );
    replaced.assert_first(false);

    Certificates::make_until(&replaced.folder, UNIX_EPOCH);
    replaced.running.wait_for_log(|event| {
        event["message"] == REPLACED && event["expires"] != "4096-01-01T00:00:00Z"
    });
    assert_once(&replaced.running.terminate(), "WARN", "has expired");
}

#[test]
fn a_broken_pair_keeps_the_certificate_and_is_logged_once_until_a_link_leads_to_another_pair() {
    let mut replaced = Replaced::start();
    fs::copy(
        replaced.folder.join("client-key.pem"),
        replaced.folder.join("server-key.pem"),
    )
    .expect("a file");
    let event = replaced.running.wait_for_event(UNUSABLE);
    let reason = "server-key.pem is not the private key of";
    assert!(
        event["level"] == "ERROR" && event["reason"].to_string().contains(reason),
        "{event}"
    );
    replaced.assert_first(true);

    // SIGHUP is refused as a whole.
    replaced.running.signal("HUP");
    let event = replaced
        .running
        .wait_for_event("SIGHUP: the configuration is invalid, nothing changes");
    assert!(event["reason"].to_string().contains(reason), "{event}");
    replaced.assert_first(true);

    let other = replaced.folder.join("other");
    fs::create_dir(&other).expect("a folder");
    Certificates::make(&other);
    symlink("other", replaced.folder.join("new")).expect("a link");
    fs::rename(replaced.folder.join("new"), replaced.folder.join("data")).expect("renamed");
    replaced.running.wait_for_event(REPLACED);
    replaced.assert_first(false);
    assert_once(&replaced.running.terminate(), "ERROR", UNUSABLE);
}
