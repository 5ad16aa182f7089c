use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Files with an authority and with certificates that it signed: for a server named `localhost`, and for a client.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names of the files describe their contents")]
pub struct Certificates {
    pub authority: PathBuf,
    pub server: PathBuf,
    pub server_key: PathBuf,
    pub client: PathBuf,
    pub client_key: PathBuf,
}

impl Certificates {
    /// Creates the files in this folder.
    pub fn make(folder: &Path) -> Self {
        let mut parameters = parameters("authority", &[]);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(parameters, KeyPair::generate().expect("a key")).expect("signed");
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).expect("the folder can be written");
            path
        };
        let signed = |subject: &str, names: &[&str]| {
            let key = KeyPair::generate().expect("a key");
            let certificate = self::parameters(subject, names).signed_by(&key, &authority);
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

/// Each subject differs from the authority's: a certificate with the same subject looks self-signed.
fn parameters(subject: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let mut parameters = CertificateParams::new(names).expect("parameters");
    parameters.distinguished_name.push(DnType::CommonName, subject);
    parameters
}
