//! Certificates are replaced while the service runs.

use std::os::unix::fs::symlink;

use crate::{
    prelude::*,
    tls::{self, GET, has_response, s_client},
};

const REPLACED: &str = "the TLS certificate was replaced";
const UNUSABLE: &str = "the files of http.tls cannot be used, the certificate in use stays";

#[track_caller]
fn assert_count(exited: &Exited, level: &str, text: &str, count: usize) {
    let mut events = exited.events();
    events.retain(|event| event["level"] == level && event["message"].to_string().contains(text));
    assert_eq!(events.len(), count, "{exited:?}");
}

/// The unit test of `certificates` has the order of the readings. A link leads to the folder of the certificates.
#[test]
fn a_broken_pair_keeps_the_certificate_until_another_one_replaces_it_and_an_open_connection_goes_on()
 {
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
    let mut connection = RawConnection::open_tls(address, &first);
    let mut assert_signed_by = |authority: &str| {
        let output = s_client(address, &folder.join(authority), "");
        assert!(has_response(&output), "{output}");
        connection.send(GET);
        connection.response().assert_status(200);
    };
    assert_signed_by("first-authority.pem");

    // A link is replaced at once: the program cannot read one file of a pair without the other.
    let new_folder = |name: &str| {
        let new = folder.join(name);
        fs::create_dir(&new).expect("a folder");
        new
    };
    let switch_to = |name: &str| {
        symlink(name, folder.join("new")).expect("a link");
        fs::rename(folder.join("new"), folder.join("data")).expect("renamed");
    };
    let broken = new_folder("broken");
    fs::copy(certificates.server, broken.join("server.pem")).expect("a file");
    fs::copy(certificates.client_key, broken.join("server-key.pem")).expect("a file");
    switch_to("broken");
    let event = running.wait_for_event(UNUSABLE);
    let reason = "server-key.pem is not the private key of";
    assert!(event["reason"].to_string().contains(reason), "{event}");
    // SIGHUP is refused as a whole.
    running.signal("HUP");
    let refused = "SIGHUP: the configuration is invalid, nothing changes";
    let event = running.wait_for_event(refused);
    assert!(event["reason"].to_string().contains(reason), "{event}");
    assert_signed_by("first-authority.pem");

    Certificates::make(&new_folder("other"));
    switch_to("other");
    let event = running.wait_for_event(REPLACED);
    let expires = "4096-01-01T00:00:00Z";
    assert_members(&event, &json!({"level": "INFO", "expires": expires}));
    assert_signed_by("data/authority.pem");

    Certificates::make_until(&new_folder("expired"), UNIX_EPOCH);
    switch_to("expired");
    running.wait_for_log(|event| event["message"] == REPLACED && event["expires"] != expires);
    let exited = running.terminate();
    assert_count(&exited, "ERROR", UNUSABLE, 1);
    assert_count(&exited, "WARN", "has expired", 1);
}
