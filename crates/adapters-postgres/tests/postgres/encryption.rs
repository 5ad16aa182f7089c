//! Encryption, with libpq's meaning of `sslmode` and `sslrootcert`.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::UNIX_EPOCH,
};

use animal_store_adapters_postgres::PgEndpoint;
use animal_store_test_servers::Certificates;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use tempfile::TempDir;

use crate::{prelude::*, store::set};

/// How a connection to the server was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Plain,
    Encrypted,
    /// No connection was made.
    Refused,
    /// The URL is invalid.
    Invalid,
}

use Connection::{Encrypted, Invalid, Plain, Refused};

static CASES: AtomicU32 = AtomicU32::new(0);

/// Values of `sslmode`. The first one is none.
const MODES: [&str; 6] = [
    "",
    "&sslmode=disable",
    "&sslmode=prefer",
    "&sslmode=require",
    "&sslmode=verify-ca",
    "&sslmode=verify-full",
];

const ONLY_PLAIN: [Connection; 6] = [Plain, Plain, Plain, Refused, Refused, Refused];

struct Server {
    server: PostgresServer,
    observer: SqlSession,
}

impl Server {
    async fn new(server: PostgresServer) -> Self {
        // Starting `psql` for each case would take most of the time.
        let folder = server.socket_directory().display();
        let socket = format!("host={folder}&port={}&user=postgres", server.port());
        let observer = SqlSession::at(&format!("postgres:///postgres?{socket}")).await;
        Self { server, observer }
    }

    fn authority(&self) -> &Path {
        &self.server.certificates().authority
    }

    async fn connection(&self, host: &str, options: &str) -> Connection {
        // Distinguishes these connections from those of earlier cases.
        let name = format!("case-{}", CASES.fetch_add(1, Ordering::Relaxed));
        let host = format!("{host}:{}", self.server.port());
        let options = format!("application_name={name}{options}");
        let url = format!("postgres://postgres@{host}/postgres?{options}");
        if PgEndpoint::parse(&url.as_str().into()).is_err() {
            return Invalid;
        }
        let Ok(store) = start_storage(&url, &url, one_connection()).await else {
            return Refused;
        };
        // It keeps its connection.
        assert_eq!(store.list(None, 0, 1).await.expect("a list"), []);
        let ours = format!("JOIN pg_stat_activity USING (pid) WHERE application_name = '{name}'");
        let encrypted = format!("SELECT DISTINCT ssl FROM pg_stat_ssl {ours}");
        let encrypted = self.observer.column(&encrypted).await;
        match encrypted.join(" ").as_str() {
            "t" => Encrypted,
            "f" => Plain,
            both => panic!("{url}: {both}"),
        }
    }

    /// Checks the connection of each of [`MODES`] to this host, with these authorities, all at the same time.
    async fn gives(&self, host: &str, authorities: Option<&Path>, expected: [Connection; 6]) {
        let roots = authorities.map(|file| format!("&sslrootcert={}", file.display()));
        let roots = roots.unwrap_or_default();
        let options = MODES.map(|mode| format!("{mode}{roots}"));
        let connections = options.iter().map(|options| self.connection(host, options));
        let connections = join_all(connections).await;
        assert_eq!(connections, expected, "{MODES:?} to {host} with {roots}");
    }

    /// Makes the server read its settings, rules and certificate again.
    async fn reload(&self) {
        // A session that exists learns of them before the server has read its rules and certificate.
        let loaded = || self.server.sql("SELECT pg_conf_load_time()");
        let before = loaded();
        self.server.sql("SELECT pg_reload_conf()");
        let is_loaded = async || loaded() != before;
        wait_until("the configuration is loaded", is_loaded).await;
    }

    /// Gives the server another certificate.
    async fn install(&self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) {
        let files = self.server.certificates();
        // Overwriting keeps the owner and the mode of the file.
        fs::write(&files.server, certificate).expect("the file can be written");
        fs::write(&files.server_key, key).expect("the file can be written");
        self.reload().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_checked_as_the_mode_requires() {
    let server = Server::new(PostgresServer::with_tls()).await;
    let folder = TempDir::new().expect("a folder");
    let other = Certificates::make(folder.path()).authority;
    let right = Some(server.authority());
    for (host, authorities, expected) in [
        (
            "localhost",
            None,
            [Encrypted, Plain, Encrypted, Encrypted, Invalid, Refused],
        ),
        (
            "localhost",
            right,
            [Encrypted, Plain, Encrypted, Encrypted, Encrypted, Encrypted],
        ),
        ("localhost", Some(other.as_path()), ONLY_PLAIN),
        // The certificate is not for this name.
        (
            "127.0.0.1",
            right,
            [Encrypted, Plain, Encrypted, Encrypted, Encrypted, Refused],
        ),
        // The authorities of the system sign for every name, so the name has to be checked.
        (
            "localhost",
            Some(Path::new("system")),
            [Refused, Invalid, Invalid, Invalid, Invalid, Refused],
        ),
        (
            "localhost",
            Some(Path::new("/nowhere")),
            [Invalid, Plain, Invalid, Invalid, Invalid, Invalid],
        ),
    ] {
        server.gives(host, authorities, expected).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_handshake_only_modes_that_allow_it_connect_without_tls() {
    let server = Server::new(PostgresServer::with_tls()).await;
    let folder = TempDir::new().expect("a folder");
    let right = Some(server.authority());
    // No client supports these versions.
    set(&server.server, "ssl_min_protocol_version", "TLSv1").await;
    set(&server.server, "ssl_max_protocol_version", "TLSv1.1").await;
    server.gives("localhost", right, ONLY_PLAIN).await;
    server.observer.run("ALTER SYSTEM RESET ALL").await;

    let self_signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("signed");
    let key = self_signed.signing_key.serialize_pem();
    server.install(self_signed.cert.pem(), key).await;
    let unchecked = [Encrypted, Plain, Encrypted, Encrypted, Invalid, Refused];
    server.gives("localhost", None, unchecked).await;
    server.gives("localhost", right, ONLY_PLAIN).await;

    let end = UNIX_EPOCH + Duration::from_hours(24 * 365 * 30);
    let expired = Certificates::make_until(folder.path(), end);
    let certificate = fs::read(&expired.server).expect("a file");
    let key = fs::read(&expired.server_key).expect("a file");
    server.install(certificate, key).await;
    let authorities = Some(expired.authority.as_path());
    server.gives("localhost", authorities, ONLY_PLAIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_self_signed_certificate_of_an_authority_is_accepted_if_the_file_has_it() {
    let server = Server::new(PostgresServer::with_tls()).await;
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("server.crt");
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a valid name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let install = async |params: &CertificateParams| {
        let certificate = params.self_signed(&key).expect("signed").pem();
        fs::write(&file, &certificate).expect("the file can be written");
        server.install(certificate, key.serialize_pem()).await;
    };
    let mut expected = [Encrypted, Plain, Encrypted, Encrypted, Encrypted, Encrypted];
    install(&params).await;
    server.gives("localhost", Some(&file), expected).await;
    let others = Some(server.authority());
    server.gives("localhost", others, ONLY_PLAIN).await;
    // The certificate is not for this name.
    expected[5] = Refused;
    server.gives("127.0.0.1", Some(&file), expected).await;
    params.not_after = rcgen::date_time_ymd(2000, 1, 1);
    install(&params).await;
    server.gives("localhost", Some(&file), ONLY_PLAIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_gets_plain_connections_only() {
    let server = Server::new(PostgresServer::start()).await;
    let expected = [Plain, Plain, Plain, Refused, Invalid, Refused];
    server.gives("127.0.0.1", None, expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_requires_tls_gets_no_plain_connection_and_reports_a_wrong_password() {
    let server = Server::new(PostgresServer::with_tls()).await;
    let access = async |rule| {
        let rules = format!("local all all trust\nhostssl all all 127.0.0.1/32 {rule}\n");
        let file = server.server.socket_directory().join("pg_hba.conf");
        fs::write(file, rules).expect("it can be written");
        server.reload().await;
    };
    access("trust").await;
    let mut expected = [Encrypted; 6];
    expected[1] = Refused;
    let right = Some(server.authority());
    server.gives("localhost", right, expected).await;
    // The error of the encrypted attempt is reported, not that of the plain one after it.
    let role = "CREATE ROLE shop LOGIN PASSWORD 'right'";
    server.observer.run(role).await;
    access("scram-sha-256").await;
    let url = server.server.url();
    let url = url.replace("postgres@", "shop:wrong@");
    let error = migrations(&url).pending().await;
    let text = error.expect_err("a wrong password").to_string();
    assert!(text.contains("password authentication failed"), "{text}");
}
