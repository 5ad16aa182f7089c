//! TLS, with OpenSSL and curl as clients.

use std::io::ErrorKind;

use crate::{prelude::*, quickstart};

pub(crate) const GET: &str = "GET /v1/pets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer process-token-of-the-tests\r\n\r\n";

/// A program with TLS, with the API key [`TOKEN`](crate::program::TOKEN), and its certificates in its working
/// directory.
pub(crate) fn program() -> (Program, Certificates) {
    with_tls(Program::with_key())
}

/// Adds TLS to a program.
pub(crate) fn with_tls(program: Program) -> (Program, Certificates) {
    let certificates = Certificates::make(program.directory());
    let program = program
        .set("http.tls.cert_file", "server.pem")
        .set("http.tls.key_file", "server-key.pem");
    (program, certificates)
}

/// A running server and the authority that has signed its certificate.
struct Server {
    running: Running,
    address: SocketAddr,
    certificates: Certificates,
}

impl Server {
    /// Starts a program with this authority of clients.
    fn start(authority: &Path) -> Self {
        let (program, certificates) = program();
        let authority = authority.to_str().expect("UTF-8");
        let mut running = program.set("http.tls.client_ca_file", authority).start();
        let address = running.address();
        Self {
            running,
            address,
            certificates,
        }
    }

    /// Sends a request with these options of `openssl s_client`. Returns what it prints.
    fn request(&self, options: &str) -> String {
        s_client(self.address, &self.certificates.authority, options)
    }
}

/// Sends a request with `openssl s_client`. Returns what it prints, with the response.
pub(crate) fn s_client(address: SocketAddr, authority: &Path, options: &str) -> String {
    let mut client = Command::new("openssl")
        .args("s_client -ign_eof -servername localhost -verify_return_error".split(' '))
        .args(["-connect", &address.to_string(), "-CAfile"])
        .arg(authority)
        .args(options.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("OpenSSL is installed");
    let request = GET.replace("Host", "Connection: close\r\nHost");
    let mut input = client.stdin.take().expect("a pipe");
    // Fails if the handshake has failed.
    let _ = input.write_all(request.as_bytes());
    drop(input);
    let output = client.wait_with_output().expect("an exit status");
    let printed = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&printed).into_owned()
}

/// The options that send a certificate of a client.
fn with_certificate(certificate: &Path, key: &Path) -> String {
    format!("-cert {} -key {}", certificate.display(), key.display())
}

pub(crate) fn has_response(output: &str) -> bool {
    output.contains("HTTP/1.1 200 OK")
}

#[test]
fn tls_1_2_and_1_3_are_accepted_and_older_versions_and_plain_http_are_refused() {
    let server = Server::start(Path::new(""));
    for (options, protocol) in [
        ("-tls1_2", "New, TLSv1.2"),
        ("-tls1_3", "New, TLSv1.3"),
        ("", "New, TLSv1.3"),
    ] {
        let output = server.request(options);
        assert!(
            has_response(&output) && output.contains(protocol),
            "{output}"
        );
    }
    let output = server.request("-tls1_1 -cipher ALL:@SECLEVEL=0");
    assert!(!has_response(&output), "{output}");
    assert!(output.contains("Cipher is (NONE)"), "{output}");
    let mut plain = HttpClient::new(server.address).request("GET", "/").begin();
    // An alert of TLS, and the end of the connection.
    let refusal = plain.try_response().expect_err("no response");
    assert_eq!(refusal.kind(), ErrorKind::UnexpectedEof);
}

/// The tests of `http1/src/warnings` own the rule about warnings.
#[test]
fn clients_need_a_certificate_of_an_authority_and_those_that_are_refused_are_one_warning() {
    let server = Server::start(Path::new("authority.pem"));
    let folder = new_folder();
    let strangers = Certificates::make(folder.path());
    let ours = &server.certificates;
    let strangers = with_certificate(&strangers.client, &strangers.client_key);
    let ours = with_certificate(&ours.client, &ours.client_key);
    for version in ["-tls1_2", "-tls1_3"] {
        for (certificate, is_served) in [(&*ours, true), ("", false), (&strangers, false)] {
            let output = server.request(&format!("{version} {certificate}"));
            assert_eq!(has_response(&output), is_served, "{output}");
        }
    }
    let exited = server.running.terminate();
    let mut events = exited.events_of("the TLS certificate of a client is refused");
    // Both authorities have one name, and different keys.
    events.retain(|event| event["reason"].to_string().contains("BadSignature"));
    assert_eq!(events.len(), 1, "{exited:?}");
    assert_members(&events[0], &json!({"level": "WARN", "client": "127.0.0.1"}));
}

#[test]
fn sessions_are_resumed_only_if_clients_need_no_certificate() {
    for authority in ["", "authority.pem"] {
        let server = Server::start(Path::new(authority));
        let certificates = &server.certificates;
        let session = certificates.server.with_file_name("session");
        let certificate = with_certificate(&certificates.client, &certificates.client_key);
        for version in ["-tls1_2", "-tls1_3"] {
            let client = |option: &str| {
                let path = session.display();
                server.request(&format!("{version} {certificate} {option} {path}"))
            };
            assert!(has_response(&client("-sess_out")));
            let is_resumed = session.exists() && client("-sess_in").contains("Reused, ");
            assert_eq!(is_resumed, authority.is_empty(), "{version} {authority:?}");
            let _ = fs::remove_file(&session);
        }
    }
}

#[test]
fn the_commands_of_the_quickstart_work_with_tls() {
    let (program, certificates) = with_tls(Program::with_file());
    let mut running = program.args("--print-key").start();
    let commands = quickstart::commands(&mut running);
    let address = running.address();
    running.wait_for_text(&format!("listens on https://{address}."));
    running.wait_for_text("--cacert FILE");
    let explorer = running.wait_for_text("In a browser, with the same key: ");
    assert_eq!(
        explorer,
        format!("https://localhost:{}/docs", address.port())
    );
    let authority = certificates.authority.display();
    quickstart::assert_both_work(&commands.map(|line| format!("{line} --cacert {authority}")));
}

#[test]
fn a_failed_handshake_is_logged_and_the_end_of_the_certificate_is_in_the_metrics() {
    let (program, certificates) = program();
    let mut running = program.set("log.filter", "debug").start();
    s_client(running.address(), &certificates.authority, "-alpn h2");
    let expiry = "animal_store_http_tls_certificate_expiry_timestamp_seconds";
    assert_eq!(metric(running.management_address(), expiry), 67_090_118_400);
    let event = running.wait_for_event("TLS handshake failed");
    assert_members(&event, &json!({"level": "DEBUG", "client": "127.0.0.1"}));
}
