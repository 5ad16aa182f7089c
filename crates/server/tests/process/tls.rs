//! TLS, with OpenSSL, curl and Python as clients.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Command, Stdio},
};

use animal_store_test_servers::Certificates;

use crate::program::{Program, Running, TOKEN, metric};

pub(crate) const GET: &str =
    "GET /v1/pets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer process-token-1\r\n\r\n";
const FINAL: &str =
    "GET /v1/pets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer process-token-1\r\nConnection: close\r\n\r\n";

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
        .args(["s_client", "-ign_eof", "-servername", "localhost", "-verify_return_error", "-CAfile"])
        .arg(authority)
        .args(["-connect", &address.to_string()])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("OpenSSL is installed");
    // Fails if the handshake has failed.
    let _ = client.stdin.take().expect("a pipe").write_all(FINAL.as_bytes());
    let output = client.wait_with_output().expect("an exit status");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn has_response(output: &str) -> bool {
    output.contains("HTTP/1.1 200 OK")
}

#[test]
fn tls_1_2_and_1_3_are_accepted_and_older_versions_are_refused() {
    let (_running, address, certificates) = start();
    let authority = &certificates.authority;
    for (options, protocol) in [(&["-tls1_2"][..], "TLSv1.2"), (&["-tls1_3"], "TLSv1.3"), (&[], "TLSv1.3")] {
        let output = s_client(address, authority, options);
        assert!(has_response(&output) && output.contains(&format!("New, {protocol}")), "{output}");
    }
    for options in [["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1", "-cipher", "ALL:@SECLEVEL=0"]] {
        let output = s_client(address, authority, &options);
        assert!(!has_response(&output) && output.contains("Cipher is (NONE)"), "{output}");
    }
}

#[test]
fn authorities_of_clients_require_a_certificate_that_one_of_them_has_signed() {
    let (program, certificates) = program();
    let strangers = tempfile::tempdir().expect("a folder");
    let stranger = Certificates::make(strangers.path());
    let mut running = program.env("ANIMAL_STORE_HTTP__TLS__CLIENT_CA_FILE", "authority.pem").start();
    let address = running.address();
    for version in ["-tls1_2", "-tls1_3"] {
        let with = |files: Option<&Certificates>| {
            let paths = files.map(|files| [&files.client, &files.client_key].map(|path| path.to_str().expect("UTF-8")));
            let mut options = vec![version];
            options.extend(paths.into_iter().flat_map(|[certificate, key]| ["-cert", certificate, "-key", key]));
            has_response(&s_client(address, &certificates.authority, &options))
        };
        assert!(with(Some(&certificates)));
        assert!(!with(None));
        assert!(!with(Some(&stranger)));
    }
}

#[test]
fn sessions_are_resumed_only_if_clients_need_no_certificate() {
    for authorities in ["", "authority.pem"] {
        let (program, certificates) = program();
        let session = program.directory().join("session");
        let mut running = program.env("ANIMAL_STORE_HTTP__TLS__CLIENT_CA_FILE", authorities).start();
        let address = running.address();
        let [certificate, key, path] =
            [&certificates.client, &certificates.client_key, &session].map(|path| path.to_str().expect("UTF-8"));
        for version in ["-tls1_2", "-tls1_3"] {
            let client = |options: &[&str]| {
                let options = [&[version, "-cert", certificate, "-key", key], options].concat();
                s_client(address, &certificates.authority, &options)
            };
            assert!(has_response(&client(&["-sess_out", path])));
            let is_resumed = session.exists() && client(&["-sess_in", path]).contains("Reused, ");
            assert_eq!(is_resumed, authorities.is_empty(), "{version} {authorities:?}");
            let _ = fs::remove_file(&session);
        }
    }
}

#[test]
fn curl_and_python_create_and_list_pets() {
    let (_running, address, certificates) = start();
    let (port, authority) = (address.port(), certificates.authority.to_str().expect("UTF-8"));
    let curl = |options: &[&str]| {
        let output = Command::new("curl")
            .args(["-sS", "--cacert", authority, "-H", &format!("Authorization: Bearer {TOKEN}")])
            .args(options)
            .arg(format!("https://localhost:{port}/v1/pets"))
            .output()
            .expect("curl is installed");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let created = curl(&["-H", "Content-Type: application/json", "-d", r#"{"name":"Rex","categoryId":1}"#]);
    assert!(created.contains(r#""name":"Rex""#), "{created}");
    assert_eq!(curl(&["--http2"]), format!("[{created}]"), "a client that prefers HTTP/2");

    let script = "import http.client, ssl, sys\n\
        port, authority, token = sys.argv[1:]\n\
        context = ssl.create_default_context(cafile=authority)\n\
        client = http.client.HTTPSConnection('localhost', int(port), context=context)\n\
        for _ in range(3):\n    \
            client.request('GET', '/v1/pets', headers={'Authorization': 'Bearer ' + token})\n    \
            print(client.getresponse().read().decode())\n";
    let output = Command::new("python3").args(["-c", script, &port.to_string(), authority, TOKEN]).output();
    let output = output.expect("Python is installed");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(lines, format!("[{created}]\n").repeat(3), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn plain_http_gets_no_response() {
    let (_running, address, _certificates) = start();
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(GET.as_bytes()).expect("accepted");
    let mut received = Vec::new();
    // The connection can be reset.
    let _ = stream.read_to_end(&mut received);
    assert!(!received.starts_with(b"HTTP"), "{received:?}");
}

#[test]
fn a_failed_handshake_is_in_the_log_and_the_end_of_the_certificate_in_the_metrics() {
    let (program, certificates) = program();
    let mut running = program.env("ANIMAL_STORE_LOG__FILTER", "debug").start();
    let (address, management) = (running.address(), running.management_address());
    s_client(address, &certificates.authority, &["-alpn", "h2"]);

    assert_eq!(metric(management, "animal_store_http_tls_certificate_expiry_timestamp_seconds"), 67_090_118_400);
    let event = running.wait_for_event("TLS handshake failed");
    assert_eq!(event["level"], "DEBUG", "{event}");
    assert!(event["client"].as_str().is_some_and(|client| client.starts_with("127.0.0.1:")), "{event}");
}
