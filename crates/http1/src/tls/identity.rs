//! The certificate of the server, its key, and the authorities of its clients. The text of a key is in a type of
//! `secrecy`, the key itself in types of rustls, and no error contains a byte of a key file.

#[cfg(test)]
mod tests;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_small_files::read_regular;
use rustls::{
    Error, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    version::{TLS12, TLS13},
};
use secrecy::{ExposeSecret, SecretSlice};
use thiserror::Error;
use x509_cert::{
    Certificate, Version,
    der::{Decode, asn1::UintRef},
    ext::pkix::BasicConstraints,
    spki::ObjectIdentifier,
};

/// The only protocol that clients can negotiate. The transport decides which bytes of HTTP/1 actix receives.
const HTTP_1: &[u8] = b"http/1.1";

/// The algorithm of RSA keys (RFC 8017, appendix A.1).
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// The private keys that can be used.
const KEY_KINDS: &str = "RSA from 2048 to 4096 bits, P-256, P-384 or Ed25519";

/// Texts in a PEM file whose private key is encrypted.
const ENCRYPTED: [&str; 2] = ["BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED"];

/// PEM files with the identity of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those of its intermediate authorities.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub private_key: PathBuf,
    /// Authorities, one of which must have signed the certificate of each client. `None`: clients need none.
    pub client_authorities: Option<PathBuf>,
}

/// The file that cannot be used, with its path and the reason.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum TlsFilesError {
    /// [`TlsFiles::certificate`]
    #[error("{0}")]
    Certificate(String),
    /// [`TlsFiles::private_key`]
    #[error("{0}")]
    PrivateKey(String),
    /// [`TlsFiles::client_authorities`]
    #[error("{0}")]
    ClientAuthorities(String),
}

/// What the server uses in handshakes. If clients need certificates, no session is resumed: each handshake checks the
/// certificate and its end.
pub struct TlsIdentity {
    /// The files that it was read from.
    pub files: TlsFiles,
    pub(super) config: Arc<ServerConfig>,
    chain: Vec<CertificateDer<'static>>,
    client_authorities: Vec<CertificateDer<'static>>,
    /// Since 1970.
    pub(super) expires: Duration,
}

/// The authorities of the clients.
struct ClientAuthorities {
    certificates: Vec<CertificateDer<'static>>,
    /// Verifies the certificates that they have signed.
    verifier: Arc<dyn ClientCertVerifier>,
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read or used, or the private key is not that of the certificate.
    pub fn load(&self) -> Result<TlsIdentity, TlsFilesError> {
        let chain = read_certificates(&self.certificate).map_err(TlsFilesError::Certificate)?;
        let certificate = Certificate::from_der(&chain[0]);
        let certificate = certificate.map_err(|error| self.invalid_certificate(&error))?;
        if certificate.tbs_certificate.version != Version::V3 {
            return Err(self.invalid_certificate(&"X.509 version 3 is required"));
        }
        let key = read_private_key(&self.private_key).map_err(TlsFilesError::PrivateKey)?;
        let clients = self.load_client_authorities();
        let clients = clients.map_err(TlsFilesError::ClientAuthorities)?;
        let config = server_config(chain.clone(), key, clients.verifier);
        let mut config = config.map_err(|error| self.unusable(error))?;
        if clients.certificates.is_empty() {
            let ticketer = ring::Ticketer::new();
            config.ticketer = ticketer.map_err(|error| self.invalid_certificate(&error))?;
        } else {
            // A resumed session would skip the check of the certificate. Without a ticketer, there are no tickets.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        config.alpn_protocols = vec![HTTP_1.to_vec()];
        Ok(TlsIdentity {
            files: self.clone(),
            config: Arc::new(config),
            chain,
            client_authorities: clients.certificates,
            expires: end(&certificate),
        })
    }

    fn load_client_authorities(&self) -> Result<ClientAuthorities, String> {
        let Some(path) = &self.client_authorities else {
            return Ok(ClientAuthorities {
                certificates: Vec::new(),
                verifier: WebPkiClientVerifier::no_client_auth(),
            });
        };
        let unusable =
            |error: &dyn fmt::Display| format!("{} cannot be used: {error}", path.display());
        let certificates = read_certificates(path)?;
        let mut roots = RootCertStore::empty();
        for der in &certificates {
            let certificate = Certificate::from_der(der).map_err(|error| unusable(&error))?;
            if !is_authority(&certificate) {
                let subject = certificate.tbs_certificate.subject;
                return Err(unusable(&format!("{subject} is no authority (CA:TRUE)")));
            }
            let added = roots.add(der.clone());
            added.map_err(|error| unusable(&error))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(ClientAuthorities {
            certificates,
            verifier: verifier.build().map_err(|error| unusable(&error))?,
        })
    }

    fn invalid_certificate(&self, reason: &dyn fmt::Display) -> TlsFilesError {
        let name = self.certificate.display();
        TlsFilesError::Certificate(format!("{name} is not valid: {reason}"))
    }

    /// Returns why the certificate and its key cannot be used.
    fn unusable(&self, error: Error) -> TlsFilesError {
        let name = self.certificate.display();
        let key = self.private_key.display();
        match error {
            Error::InvalidCertificate(error) => self.invalid_certificate(&error),
            Error::InconsistentKeys(_) => {
                TlsFilesError::PrivateKey(format!("{key} is not the private key of {name}"))
            }
            Error::General(_) => TlsFilesError::PrivateKey(format!(
                "{key} is damaged or of no supported kind: {KEY_KINDS}"
            )),
            error => TlsFilesError::PrivateKey(format!("{key} cannot be used: {error}")),
        }
    }
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    verifier: Arc<dyn ClientCertVerifier>,
) -> Result<ServerConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
}

/// Whether a certificate may sign others. One of version 1 cannot say so: it is a root if it has signed itself.
fn is_authority(certificate: &Certificate) -> bool {
    let certificate = &certificate.tbs_certificate;
    match certificate.get::<BasicConstraints>() {
        Ok(Some((_, constraints))) => constraints.ca,
        Ok(None) => certificate.version == Version::V1 && certificate.issuer == certificate.subject,
        Err(_) => false,
    }
}

/// Returns the end of a certificate, since 1970.
fn end(certificate: &Certificate) -> Duration {
    let validity = certificate.tbs_certificate.validity;
    validity.not_after.to_unix_duration()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    read_regular(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read(path)?;
    match CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>() {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(format!(
            "{} has no valid certificate in PEM",
            path.display()
        )),
    }
}

fn contains(text: &[u8], part: &str) -> bool {
    text.windows(part.len())
        .any(|bytes| bytes == part.as_bytes())
}

fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let text = SecretSlice::from(read(path)?);
    let text = text.expose_secret();
    if ENCRYPTED.iter().any(|marker| contains(text, marker)) {
        return Err(format!(
            "{} is encrypted: decrypt it with `openssl pkey`",
            path.display()
        ));
    }
    // The error of the library can contain a line of the file.
    PrivateKeyDer::from_pem_slice(text)
        .map_err(|_| format!("{} has no valid private key in PEM", path.display()))
}

impl TlsIdentity {
    /// End of the certificate.
    pub fn expires(&self) -> SystemTime {
        UNIX_EPOCH + self.expires
    }

    /// Whether an authority of clients has expired. The certificates that it has signed are still accepted.
    pub fn has_expired_authority(&self) -> bool {
        for der in &self.client_authorities {
            if let Ok(authority) = Certificate::from_der(der)
                && UNIX_EPOCH + end(&authority) < SystemTime::now()
            {
                return true;
            }
        }
        false
    }

    /// Length of the key in bits, if it is one of RSA.
    pub fn rsa_bits(&self) -> Option<usize> {
        let certificate = Certificate::from_der(&self.chain[0]).ok()?.tbs_certificate;
        let key = certificate.subject_public_key_info;
        if key.algorithm.oid != RSA {
            return None;
        }
        let key = key.subject_public_key.raw_bytes();
        let [modulus, _exponent] = <[UintRef; 2]>::from_der(key).ok()?;
        Some(8 * modulus.as_bytes().len())
    }

    /// Time until the end of the certificate. `None` if it has expired.
    pub fn remaining(&self) -> Option<Duration> {
        self.expires().duration_since(SystemTime::now()).ok()
    }
}

/// Compares the certificates. Another key of the same certificate is not possible.
impl PartialEq for TlsIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.chain == other.chain && self.client_authorities == other.client_authorities
    }
}

/// Without the key.
impl fmt::Debug for TlsIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TlsIdentity")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}
