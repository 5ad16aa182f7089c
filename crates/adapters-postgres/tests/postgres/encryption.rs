//! Encryption, with libpq's meanings of `sslmode` and `sslrootcert`.

use std::{fs, path::Path};

use animal_store_adapters_postgres::{Migrations, PgEndpoint, PgStorage};
use animal_store_app::ports::PetRepository;
use animal_store_test_servers::{Certificates, PostgresServer};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tempfile::TempDir;

use crate::{
    calls::PATIENCE,
    store::{endpoint, settings},
};

/// How a server was spoken with, or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Plain,
    Encrypted,
    /// Nobody was spoken with.
    Refused,
    /// There is no such endpoint.
    Invalid,
}

use Outcome::{Encrypted, Invalid, Plain, Refused};

const MODES: [&str; 6] = ["", "disable", "prefer", "require", "verify-ca", "verify-full"];

struct Case<'a> {
    server: &'a PostgresServer,
    host: &'a str,
    roots: Option<&'a Path>,
}

impl Case<'_> {
    async fn outcome(&self, mode: &str) -> Outcome {
        // What is left of another case is told from this by its name.
        let name =
            format!("case-{mode}-{}-{:?}", self.host, self.roots.map(Path::file_name)).replace(['"', '(', ')'], "");
        let mode = if mode.is_empty() { String::new() } else { format!("&sslmode={mode}") };
        let roots = self.roots.map_or_else(String::new, |roots| format!("&sslrootcert={}", roots.display()));
        let (host, port) = (self.host, self.server.port());
        let url = format!("postgres://postgres@{host}:{port}/postgres?application_name={name}{mode}{roots}");
        let Ok(endpoint) = PgEndpoint::new(&url.into()) else { return Invalid };
        let Ok((storage, _)) = PgStorage::start(endpoint.clone(), endpoint, settings()).await else { return Refused };
        let repository = storage.repository();
        assert_eq!(repository.list(None, None, 1).await.expect("a list"), []);
        let connections = format!(
            "SELECT bool_and(ssl), bool_or(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
             WHERE application_name = '{name}'"
        );
        match self.server.sql("postgres", &connections).as_str() {
            "t|t" => Encrypted,
            "f|f" => Plain,
            other => panic!("{name}: {other}"),
        }
    }

    /// The outcome of each of [`MODES`].
    async fn comes_to(&self, expected: [Outcome; 6]) {
        for (mode, expected) in MODES.into_iter().zip(expected) {
            assert_eq!(self.outcome(mode).await, expected, "{mode:?} to {} with {:?}", self.host, self.roots);
        }
    }
}

/// Gives a server another certificate.
fn install(server: &mut PostgresServer, certificate: &str, key: &str) {
    // Written over, the key's file keeps its owner and its mode.
    fs::write(&server.certificates().server, certificate).expect("the file can be written");
    fs::write(&server.certificates().server_key, key).expect("the file can be written");
    server.stop();
    server.start_again();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_offers_tls_is_checked_as_far_as_asked_for() {
    let server = PostgresServer::with_tls();
    let folder = TempDir::new().expect("a folder");
    let other = Certificates::make(folder.path()).authority;
    let right = server.certificates().authority.as_path();
    let case = |host, roots| Case { server: &server, host, roots };
    let e = || Encrypted;

    case("localhost", None).comes_to([e(), Plain, e(), e(), Invalid, Refused]).await;
    case("localhost", Some(right)).comes_to([e(), Plain, e(), e(), e(), e()]).await;
    case("localhost", Some(&other)).comes_to([Plain, Plain, Plain, Refused, Refused, Refused]).await;
    // The certificate is none of this name.
    case("127.0.0.1", None).comes_to([e(), Plain, e(), e(), Invalid, Refused]).await;
    case("127.0.0.1", Some(right)).comes_to([e(), Plain, e(), e(), e(), Refused]).await;
    case("127.0.0.1", Some(&other)).comes_to([Plain, Plain, Plain, Refused, Refused, Refused]).await;
    // The authorities of the system sign for everybody: the name has to be asked for.
    let system = Some(Path::new("system"));
    case("localhost", system).comes_to([Refused, Invalid, Invalid, Invalid, Invalid, Refused]).await;
    let nowhere = Some(Path::new("/nowhere"));
    case("localhost", nowhere).comes_to([Invalid, Plain, Invalid, Invalid, Invalid, Invalid]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_requires_tls_is_not_spoken_with_in_plain_text() {
    let server = PostgresServer::requiring_tls();
    let right = Some(server.certificates().authority.as_path());
    let case = Case { server: &server, host: "localhost", roots: right };
    case.comes_to([Encrypted, Refused, Encrypted, Encrypted, Encrypted, Encrypted]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_tls_is_spoken_with_where_that_will_do() {
    let server = PostgresServer::start();
    let case = Case { server: &server, host: "127.0.0.1", roots: None };
    case.comes_to([Plain, Plain, Plain, Refused, Invalid, Refused]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_handshake_fails_plain_text_is_used_if_that_will_do() {
    let mut server = PostgresServer::with_tls();
    // Nobody speaks that any more.
    server.sql("postgres", "ALTER SYSTEM SET ssl_min_protocol_version = 'TLSv1'");
    server.sql("postgres", "ALTER SYSTEM SET ssl_max_protocol_version = 'TLSv1.1'");
    server.stop();
    server.start_again();
    let right = server.certificates().authority.as_path();
    let case = Case { server: &server, host: "localhost", roots: Some(right) };
    case.comes_to([Plain, Plain, Plain, Refused, Refused, Refused]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_signed_itself_is_no_authoritys() {
    let mut server = PostgresServer::with_tls();
    let itself = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("signed");
    install(&mut server, &itself.cert.pem(), &itself.signing_key.serialize_pem());
    let right = server.certificates().authority.as_path();
    let case = |roots| Case { server: &server, host: "localhost", roots };

    case(None).comes_to([Encrypted, Plain, Encrypted, Encrypted, Invalid, Refused]).await;
    case(Some(right)).comes_to([Plain, Plain, Plain, Refused, Refused, Refused]).await;
}

/// Also where the name is not looked at, or is another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_has_expired_does_not_count() {
    let mut server = PostgresServer::with_tls();
    let mut authority = CertificateParams::new([]).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("signed");
    let mut expired = CertificateParams::new(["localhost".to_owned()]).expect("parameters");
    expired.distinguished_name.push(DnType::CommonName, "server");
    (expired.not_before, expired.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    let key = KeyPair::generate().expect("a key");
    let expired = expired.signed_by(&key, &authority).expect("signed");
    install(&mut server, &expired.pem(), &key.serialize_pem());
    let folder = TempDir::new().expect("a folder");
    let right = folder.path().join("authority.pem");
    fs::write(&right, authority.pem()).expect("the folder can be written");

    for host in ["localhost", "127.0.0.1"] {
        let case = Case { server: &server, host, roots: Some(&right) };
        case.comes_to([Plain, Plain, Plain, Refused, Refused, Refused]).await;
    }
}

/// What has to be mended is the password, whatever else is tried after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_told_as_that_where_encryption_is_required() {
    let server = PostgresServer::requiring_tls();
    server.sql("postgres", "CREATE ROLE shop LOGIN PASSWORD 'right'");
    let access = server.socket_directory().join("pg_hba.conf");
    fs::write(&access, "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n").expect("it can be written");
    server.sql("postgres", "SELECT pg_reload_conf()");
    let url = server.url("postgres").replace("postgres@", "shop:wrong@");
    let error = Migrations::new(endpoint(&url), PATIENCE).pending().await.expect_err("a wrong password");
    assert!(error.to_string().contains("password authentication failed"), "{error}");
}
