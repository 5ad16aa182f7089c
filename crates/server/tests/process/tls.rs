//! TLS, with OpenSSL and curl as clients.

use std::{
    fs,
    io::{ErrorKind, Write},
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
};

use animal_store_test_servers::{Certificates, HttpClient};

use crate::{
    program::{Program, Running, metric},
    quickstart,
};

pub(crate) const GET: &str =
    "GET /v1/pets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer process-token-1\r\n\r\n";

/// A program with TLS, with the API key [`TOKEN`], and its certificates in its working directory.
pub(crate) fn program() -> (Program, Certificates) {
    with_tls(Program::with_key())
}

/// Adds TLS to a program.
pub(crate) fn with_tls(program: Program) -> (Program, Certificates) {
    let certificates = Certificates::make(program.directory());
    let program = program
        .env("ANIMAL_STORE_HTTP__TLS__CERT_FILE", "server.pem")
        .env("ANIMAL_STORE_HTTP__TLS__KEY_FILE", "server-key.pem");
    (program, certificates)
}

fn start() -> (Running, SocketAddr, Certificates) {
    let (program, certificates) = program();
    let mut running = program.start();
    let address = running.address();
    (running, address, certificates)
}

/// Sends a request with `openssl s_client`. Returns what it prints, with the response.
pub(crate) fn s_client(address: SocketAddr, authority: &Path, options: &[&str]) -> String {
    let mut client = Command::new("openssl")
        .args([
            "s_client",
            "-ign_eof",
            "-servername",
            "localhost",
            "-verify_return_error",
            "-CAfile",
        ])
        .arg(authority)
        .args(["-connect", &address.to_string()])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("OpenSSL is installed");
    // Fails if the handshake has failed.
    let request = GET.replace("Host", "Connection: close\r\nHost");
    let _ = client
        .stdin
        .take()
        .expect("a pipe")
        .write_all(request.as_bytes());
    let output = client.wait_with_output().expect("an exit status");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub(crate) fn has_response(output: &str) -> bool {
    output.contains("HTTP/1.1 200 OK")
}

#[test]
fn tls_1_2_and_1_3_are_accepted_and_older_versions_and_plain_http_are_refused() {
    let (_running, address, certificates) = start();
    for (options, protocol) in [
        (&["-tls1_2"][..], "TLSv1.2"),
        (&["-tls1_3"], "TLSv1.3"),
        (&[], "TLSv1.3"),
    ] {
        let output = s_client(address, &certificates.authority, options);
        assert!(
            has_response(&output) && output.contains(&format!("New, {protocol}")),
            "{output}"
        );
    }
    let output = s_client(
        address,
        &certificates.authority,
        &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
    );
    assert!(
        !has_response(&output) && output.contains("Cipher is (NONE)"),
        "{output}"
    );
    let mut plain = HttpClient::new(address)
        .request("GET", "/")
        .begin()
        .expect("a connection");
    let refusal = plain
        .try_response()
        .expect_err("an alert of TLS, and the end of the connection");
    assert_eq!(refusal.kind(), ErrorKind::UnexpectedEof, "{refusal}");
}

#[test]
fn authorities_of_clients_require_a_certificate_that_one_of_them_has_signed() {
    let (program, certificates) = program();
    let strangers = tempfile::tempdir().expect("a folder");
    let stranger = Certificates::make(strangers.path());
    let mut running = program
        .env("ANIMAL_STORE_HTTP__TLS__CLIENT_CA_FILE", "authority.pem")
        .start();
    let address = running.address();
    for version in ["-tls1_2", "-tls1_3"] {
        let with = |files: Option<&Certificates>| {
            let paths = files.map(|files| {
                [&files.client, &files.client_key].map(|path| path.to_str().expect("UTF-8"))
            });
            let mut options = vec![version];
            options.extend(
                paths
                    .into_iter()
                    .flat_map(|[certificate, key]| ["-cert", certificate, "-key", key]),
            );
            has_response(&s_client(address, &certificates.authority, &options))
        };
        assert_eq!(
            [Some(&certificates), None, Some(&stranger)].map(with),
            [true, false, false]
        );
    }
}

#[test]
fn sessions_are_resumed_only_if_clients_need_no_certificate() {
    for authorities in ["", "authority.pem"] {
        let (program, certificates) = program();
        let session = program.directory().join("session");
        let mut running = program
            .env("ANIMAL_STORE_HTTP__TLS__CLIENT_CA_FILE", authorities)
            .start();
        let address = running.address();
        let [certificate, key, path] = [&certificates.client, &certificates.client_key, &session]
            .map(|path| path.to_str().expect("UTF-8"));
        for version in ["-tls1_2", "-tls1_3"] {
            let client = |options: &[&str]| {
                let options = [&[version, "-cert", certificate, "-key", key], options].concat();
                s_client(address, &certificates.authority, &options)
            };
            assert!(has_response(&client(&["-sess_out", path])));
            let is_resumed = session.exists() && client(&["-sess_in", path]).contains("Reused, ");
            assert_eq!(
                is_resumed,
                authorities.is_empty(),
                "{version} {authorities:?}"
            );
            let _ = fs::remove_file(&session);
        }
    }
}

#[test]
fn the_commands_of_the_quickstart_work_with_tls() {
    let (program, certificates) = with_tls(Program::with_file());
    let mut running = program.args(&["--print-key"]).start();
    let commands = quickstart::commands(&mut running);
    let address = running.address();
    running.wait_for_text(&format!("listens on https://{address}."));
    running.wait_for_text("--cacert FILE");
    quickstart::assert_both_work(
        &commands.map(|line| format!("{line} --cacert {}", certificates.authority.display())),
    );
}

#[test]
fn a_failed_handshake_is_logged_and_the_end_of_the_certificate_is_in_the_metrics() {
    let (program, certificates) = program();
    let mut running = program.env("ANIMAL_STORE_LOG__FILTER", "debug").start();
    let (address, management) = (running.address(), running.management_address());
    s_client(address, &certificates.authority, &["-alpn", "h2"]);
    assert_eq!(
        metric(
            management,
            "animal_store_http_tls_certificate_expiry_timestamp_seconds"
        ),
        67_090_118_400
    );
    let event = running.wait_for_event("TLS handshake failed");
    assert_eq!(
        (&event["level"], &event["client"].to_string()[..11]),
        (&"DEBUG".into(), "\"127.0.0.1:"),
        "{event}"
    );
}

/// Runs OpenSSL in a folder.
fn openssl(folder: &Path, arguments: &[&str]) {
    let output = Command::new("openssl")
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("OpenSSL is installed");
    assert!(output.status.success(), "{arguments:?} {output:?}");
}

#[test]
fn a_refused_certificate_of_a_client_is_one_warning_for_each_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let strangers = tempfile::tempdir().expect("a folder");
    let stranger = Certificates::make(strangers.path());
    let (program, certificates) = program();
    // Without a file of extensions, OpenSSL 3.0 makes certificates of version 1.
    let authority = [
        "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=own",
    ];
    let files = ["-keyout", "own-key.pem", "-out", "own.pem"];
    openssl(folder.path(), &[&authority[..], &files].concat());
    let request = [
        "req",
        "-new",
        "-key",
        "own-key.pem",
        "-subj",
        "/CN=client",
        "-out",
        "request",
    ];
    openssl(folder.path(), &request);
    let sign = [
        "x509",
        "-req",
        "-in",
        "request",
        "-CA",
        "own.pem",
        "-CAkey",
        "own-key.pem",
    ];
    openssl(
        folder.path(),
        &[&sign[..], &["-out", "client.pem"]].concat(),
    );
    let [own, client, key] =
        ["own.pem", "client.pem", "own-key.pem"].map(|name| folder.path().join(name));
    let mut running = program
        .env(
            "ANIMAL_STORE_HTTP__TLS__CLIENT_CA_FILE",
            own.to_str().expect("UTF-8"),
        )
        .start();
    let address = running.address();

    for (certificate, key) in [(&client, &key), (&stranger.client, &stranger.client_key)] {
        let [certificate, key] = [certificate, key].map(|path| path.to_str().expect("UTF-8"));
        for _ in 0..2 {
            let options = ["-cert", certificate, "-key", key];
            let output = s_client(address, &certificates.authority, &options);
            assert!(!has_response(&output), "{output}");
        }
    }
    let exited = running.terminate();
    let events = exited.events();
    let reasons: Vec<_> = events
        .iter()
        .filter(|event| event["message"] == "the TLS certificate of a client is refused")
        .map(|event| (event["level"].to_string(), event["reason"].to_string()))
        .collect();
    assert_eq!(reasons.len(), 2, "{events:?}");
    assert!(
        reasons.iter().all(|(level, _)| level == r#""WARN""#),
        "{reasons:?}"
    );
    assert!(
        reasons[0].1.contains("UnsupportedCertVersion"),
        "{reasons:?}"
    );
    assert!(reasons[1].1.contains("UnknownIssuer"), "{reasons:?}");
}
