//! Encryption, with libpq's meaning of `sslmode` and `sslrootcert`.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, UNIX_EPOCH},
};

use animal_store_adapters_postgres::{Migrations, PgEndpoint, PostgresSettings};
use animal_store_app::ports::PetRepository;
use animal_store_test_servers::{Certificates, PostgresServer};
use futures_util::future::join_all;
use tempfile::TempDir;

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

use crate::{
    outcomes::{TEST_TIMEOUT, wait_until},
    sql_session::SqlSession,
    store::{endpoint, settings, start_storage},
};

static CASES: AtomicU32 = AtomicU32::new(0);

const MODES: [&str; 6] = [
    "",
    "disable",
    "prefer",
    "require",
    "verify-ca",
    "verify-full",
];

/// A server, a session over its Unix socket, a host of the server, and the authorities that are trusted.
struct Case<'a>(
    &'a PostgresServer,
    &'a SqlSession,
    &'a str,
    Option<&'a Path>,
);

impl Case<'_> {
    async fn connection(&self, mode: &str) -> Connection {
        let Case(server, observer, host, roots) = self;
        // Distinguishes these connections from those of earlier cases.
        let name = format!("case-{}", CASES.fetch_add(1, Ordering::Relaxed));
        let mode = if mode.is_empty() {
            String::new()
        } else {
            format!("&sslmode={mode}")
        };
        let roots = roots.map_or_else(String::new, |roots| {
            format!("&sslrootcert={}", roots.display())
        });
        let port = server.port();
        let url = format!(
            "postgres://postgres@{host}:{port}/postgres?application_name={name}{mode}{roots}"
        );
        let Ok(endpoint) = PgEndpoint::parse(&url.into()) else {
            return Invalid;
        };
        let settings = PostgresSettings {
            connections_per_worker: 1,
            ..settings()
        };
        let Ok((storage, _)) = start_storage(endpoint.clone(), endpoint, settings).await else {
            return Refused;
        };
        // It keeps its connection.
        let repository = storage.repository();
        assert_eq!(repository.list(None, None, 1).await.expect("a list"), []);
        let connections = format!(
            "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = '{name}'"
        );
        let encrypted = observer.column(&connections).await;
        match encrypted.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["t"] => Encrypted,
            ["f"] => Plain,
            _ => panic!("{name}: {encrypted:?}"),
        }
    }

    /// Checks the connection of each of [`MODES`], all at the same time.
    async fn gives(&self, expected: [Connection; 6]) {
        let connections = join_all(MODES.map(|mode| self.connection(mode))).await;
        assert_eq!(
            connections, expected,
            "{MODES:?} to {} with {:?}",
            self.2, self.3
        );
    }
}

/// Starting `psql` for each case would take most of the time.
async fn observer(server: &PostgresServer) -> SqlSession {
    let folder = server.socket_directory().display();
    let port = server.port();
    SqlSession::at(&format!(
        "postgres:///postgres?host={folder}&port={port}&user=postgres"
    ))
    .await
}

/// Makes the server read its settings, rules and certificate again.
async fn reload(server: &PostgresServer) {
    let loaded = || server.sql("postgres", "SELECT pg_conf_load_time()");
    let before = loaded();
    server.sql("postgres", "SELECT pg_reload_conf()");
    wait_until("the configuration is loaded", async || loaded() != before).await;
}

/// Gives the server another certificate.
async fn install(server: &PostgresServer, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) {
    // Overwriting keeps the owner and the mode of the file.
    fs::write(&server.certificates().server, certificate).expect("the file can be written");
    fs::write(&server.certificates().server_key, key).expect("the file can be written");
    reload(server).await;
}

const ONLY_PLAIN: [Connection; 6] = [Plain, Plain, Plain, Refused, Refused, Refused];

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_checked_as_the_mode_requires() {
    let server = PostgresServer::with_tls();
    let folder = TempDir::new().expect("a folder");
    let other = Certificates::make(folder.path()).authority;
    let right = server.certificates().authority.as_path();
    let observer = self::observer(&server).await;
    let case = |host, roots| Case(&server, &observer, host, roots);

    case("localhost", None)
        .gives([Encrypted, Plain, Encrypted, Encrypted, Invalid, Refused])
        .await;
    case("localhost", Some(right))
        .gives([Encrypted, Plain, Encrypted, Encrypted, Encrypted, Encrypted])
        .await;
    case("localhost", Some(&other)).gives(ONLY_PLAIN).await;
    // The certificate is not for this name.
    case("127.0.0.1", Some(right))
        .gives([Encrypted, Plain, Encrypted, Encrypted, Encrypted, Refused])
        .await;
    // The authorities of the system sign for every name, so the name has to be checked.
    case("localhost", Some(Path::new("system")))
        .gives([Refused, Invalid, Invalid, Invalid, Invalid, Refused])
        .await;
    case("localhost", Some(Path::new("/nowhere")))
        .gives([Invalid, Plain, Invalid, Invalid, Invalid, Invalid])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_handshake_only_modes_that_allow_it_connect_without_tls() {
    let server = PostgresServer::with_tls();
    let folder = TempDir::new().expect("a folder");
    let right = server.certificates().authority.as_path();
    let observer = self::observer(&server).await;
    let case = |host, roots| Case(&server, &observer, host, roots);

    // No client supports these versions.
    server.sql(
        "postgres",
        "ALTER SYSTEM SET ssl_min_protocol_version = 'TLSv1'",
    );
    server.sql(
        "postgres",
        "ALTER SYSTEM SET ssl_max_protocol_version = 'TLSv1.1'",
    );
    reload(&server).await;
    case("localhost", Some(right)).gives(ONLY_PLAIN).await;
    server.sql("postgres", "ALTER SYSTEM RESET ALL");

    let self_signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("signed");
    install(
        &server,
        self_signed.cert.pem(),
        self_signed.signing_key.serialize_pem(),
    )
    .await;
    case("localhost", None)
        .gives([Encrypted, Plain, Encrypted, Encrypted, Invalid, Refused])
        .await;
    case("localhost", Some(right)).gives(ONLY_PLAIN).await;

    let expired = Certificates::make_until(
        folder.path(),
        UNIX_EPOCH + Duration::from_hours(24 * 365 * 30),
    );
    let contents =
        [&expired.server, &expired.server_key].map(|file| fs::read(file).expect("a file"));
    install(&server, &contents[0], &contents[1]).await;
    case("localhost", Some(&expired.authority))
        .gives(ONLY_PLAIN)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_gets_plain_connections_only() {
    let server = PostgresServer::start();
    let observer = self::observer(&server).await;
    Case(&server, &observer, "127.0.0.1", None)
        .gives([Plain, Plain, Plain, Refused, Invalid, Refused])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_requires_tls_gets_no_plain_connection_and_reports_a_wrong_password() {
    let server = PostgresServer::with_tls();
    let observer = self::observer(&server).await;
    let access = async |rule| {
        let rules = format!("local all all trust\nhostssl all all 127.0.0.1/32 {rule}\n");
        fs::write(server.socket_directory().join("pg_hba.conf"), rules).expect("it can be written");
        reload(&server).await;
    };
    access("trust").await;
    let case = Case(
        &server,
        &observer,
        "localhost",
        Some(server.certificates().authority.as_path()),
    );
    case.gives([
        Encrypted, Refused, Encrypted, Encrypted, Encrypted, Encrypted,
    ])
    .await;

    // The error of the encrypted attempt is reported, not that of the plain one after it.
    server.sql("postgres", "CREATE ROLE shop LOGIN PASSWORD 'right'");
    access("scram-sha-256").await;
    let url = server.url("postgres").replace("postgres@", "shop:wrong@");
    let error = Migrations::new(endpoint(&url), TEST_TIMEOUT)
        .pending()
        .await
        .expect_err("a wrong password");
    assert!(
        error.to_string().contains("password authentication failed"),
        "{error}"
    );
}
