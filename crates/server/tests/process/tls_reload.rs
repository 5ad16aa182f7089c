//! Certificates are replaced while the service runs.

use std::{fs, net::SocketAddr, os::unix::fs::symlink, path::PathBuf, time::UNIX_EPOCH};

use animal_store_test_servers::{Certificates, RawConnection};
use serde_json::{Value, json};

use crate::{
    program::{Exited, Running, assert_members},
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
    connection: RawConnection,
}

impl Replaced {
    fn start() -> Self {
        let (program, certificates) = tls::program();
        let folder = program.directory().to_owned();
        let first = folder.join("first-authority.pem");
        fs::copy(&certificates.authority, &first).expect("a file");
        symlink(".", folder.join("data")).expect("a link");
        let mut running = program
            .set("http.tls.cert_file", "data/server.pem")
            .set("http.tls.key_file", "data/server-key.pem")
            .start();
        let address = running.address();
        let mut replaced = Self {
            running,
            address,
            folder,
            connection: RawConnection::open_tls(address, &first),
        };
        replaced.assert_signed_by("first-authority.pem");
        replaced
    }

    /// Asserts which authority has signed the certificate of new connections, and that the open one goes on.
    #[track_caller]
    fn assert_signed_by(&mut self, authority: &str) {
        let output = s_client(self.address, &self.folder.join(authority), "");
        assert!(has_response(&output), "{output}");
        self.connection.send(GET);
        self.connection.response().assert_status(200);
    }
}

#[track_caller]
fn assert_once(exited: &Exited, level: &str, text: &str) {
    let mut events = exited.events();
    events.retain(|event| event["level"] == level && event["message"].to_string().contains(text));
    assert_eq!(events.len(), 1, "{exited:?}");
}

#[test]
fn a_renewed_certificate_is_used_and_one_that_has_expired_causes_one_warning() {
    let mut replaced = Replaced::start();
    Certificates::make(&replaced.folder);
    let event = replaced.running.wait_for_event(REPLACED);
    let expires = "4096-01-01T00:00:00Z";
    assert_members(&event, &json!({"level": "INFO", "expires": expires}));
    replaced.assert_signed_by("data/authority.pem");

    Certificates::make_until(&replaced.folder, UNIX_EPOCH);
    let is_second = |event: &Value| event["message"] == REPLACED && event["expires"] != expires;
    replaced.running.wait_for_log(is_second);
    assert_once(&replaced.running.terminate(), "WARN", "has expired");
}

#[test]
fn a_broken_pair_keeps_the_certificate_and_is_logged_once_until_a_link_leads_to_another_pair() {
    let mut replaced = Replaced::start();
    let folder = replaced.folder.clone();
    let [other_key, key] = ["client-key.pem", "server-key.pem"].map(|name| folder.join(name));
    fs::copy(other_key, key).expect("a file");
    let event = replaced.running.wait_for_event(UNUSABLE);
    let reason = "server-key.pem is not the private key of";
    assert!(event["reason"].to_string().contains(reason), "{event}");
    replaced.assert_signed_by("first-authority.pem");

    // SIGHUP is refused as a whole.
    replaced.running.signal("HUP");
    let refused = "SIGHUP: the configuration is invalid, nothing changes";
    let event = replaced.running.wait_for_event(refused);
    assert!(event["reason"].to_string().contains(reason), "{event}");
    replaced.assert_signed_by("first-authority.pem");

    let other = folder.join("other");
    fs::create_dir(&other).expect("a folder");
    Certificates::make(&other);
    symlink("other", folder.join("new")).expect("a link");
    fs::rename(folder.join("new"), folder.join("data")).expect("renamed");
    replaced.running.wait_for_event(REPLACED);
    replaced.assert_signed_by("data/authority.pem");
    assert_once(&replaced.running.terminate(), "ERROR", UNUSABLE);
}
