use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

/// Files with an authority and with certificates that it signed: for a server named `localhost`, and for a client.
#[derive(Debug, Clone)]
#[expect(
    missing_docs,
    reason = "the names of the files describe their contents"
)]
pub struct Certificates {
    pub authority: PathBuf,
    pub server: PathBuf,
    pub server_key: PathBuf,
    pub client: PathBuf,
    pub client_key: PathBuf,
}

impl Certificates {
    /// Creates the files in this folder. Files with the same names are replaced.
    pub fn make(folder: &Path) -> Self {
        // 4096-01-01
        Self::make_until(folder, UNIX_EPOCH + Duration::from_hours(18_636_144))
    }

    /// Creates the files in this folder, with certificates that end at this time, not before 1970.
    pub fn make_until(folder: &Path, end: SystemTime) -> Self {
        let end =
            date_time_ymd(1970, 1, 1) + end.duration_since(UNIX_EPOCH).expect("not before 1970");
        let parameters = |subject: &str, names: &[&str]| {
            let mut parameters = parameters(subject, names);
            parameters.not_after = end;
            parameters
        };
        let mut authority_parameters = parameters("authority", &[]);
        authority_parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(authority_parameters, key).expect("signed");
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).expect("the folder can be written");
            path
        };
        let signed = |subject: &str, names: &[&str]| {
            let key = KeyPair::generate().expect("a key");
            let certificate = parameters(subject, names).signed_by(&key, &authority);
            (certificate.expect("signed").pem(), key.serialize_pem())
        };
        let (server, server_key) = signed("server", &["localhost"]);
        let (client, client_key) = signed("client", &[]);
        Self {
            authority: write("authority.pem", authority.pem()),
            server: write("server.pem", server),
            server_key: write("server-key.pem", server_key),
            client: write("client.pem", client),
            client_key: write("client-key.pem", client_key),
        }
    }
}

/// The configuration of a client of TLS that trusts this authority.
#[must_use]
pub fn tls_client(authority: &Path) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(authority).expect("a certificate"))
        .expect("an authority");
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Each subject differs from the authority's: a certificate with the same subject looks self-signed.
fn parameters(subject: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let mut parameters = CertificateParams::new(names).expect("parameters");
    parameters
        .distinguished_name
        .push(DnType::CommonName, subject);
    parameters
}
