//! The certificate of the server, its key, and the authorities of its clients. Keys are only in types of rustls, and
//! no error contains a byte of a key file.

#[cfg(test)]
mod tests;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustls::{
    Error, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    version::{TLS12, TLS13},
};
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

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read or used, or the private key is not that of the certificate.
    pub fn load(&self) -> Result<TlsIdentity, TlsFilesError> {
        let name = self.certificate.display();
        let chain = read_certificates(&self.certificate).map_err(TlsFilesError::Certificate)?;
        let invalid = |reason: &dyn fmt::Display| {
            TlsFilesError::Certificate(format!("{name} is not valid: {reason}"))
        };
        let certificate = Certificate::from_der(&chain[0]).map_err(|error| invalid(&error))?;
        let key = read_private_key(&self.private_key).map_err(TlsFilesError::PrivateKey)?;
        let provider = Arc::new(ring::default_provider());
        let (client_authorities, verifier) = match &self.client_authorities {
            Some(path) => {
                client_verifier(path, &provider).map_err(TlsFilesError::ClientAuthorities)?
            }
            None => (Vec::new(), WebPkiClientVerifier::no_client_auth()),
        };
        let config =
            ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12]);
        let config = config.and_then(|config| {
            config
                .with_client_cert_verifier(verifier)
                .with_single_cert(chain.clone(), key)
        });
        let mut config = config.map_err(|error| match error {
            Error::InvalidCertificate(error) => invalid(&error),
            Error::InconsistentKeys(_) => {
                let key = self.private_key.display();
                TlsFilesError::PrivateKey(format!("{key} is not the private key of {name}"))
            }
            error => TlsFilesError::PrivateKey(format!(
                "{} cannot be used: {error}",
                self.private_key.display()
            )),
        })?;
        if client_authorities.is_empty() {
            config.ticketer = ring::Ticketer::new().map_err(|error| invalid(&error))?;
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
            client_authorities,
            expires: end(&certificate),
        })
    }
}

/// Reads authorities, and returns a verifier of the certificates that they have signed.
fn client_verifier(
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<(Vec<CertificateDer<'static>>, Arc<dyn ClientCertVerifier>), String> {
    let unusable = |error: &dyn fmt::Display| format!("{} cannot be used: {error}", path.display());
    let authorities = read_certificates(path)?;
    let mut roots = RootCertStore::empty();
    for authority in &authorities {
        let certificate = Certificate::from_der(authority).map_err(|error| unusable(&error))?;
        if !is_authority(&certificate) {
            let subject = certificate.tbs_certificate.subject;
            return Err(unusable(&format!("{subject} is no authority (CA:TRUE)")));
        }
        roots
            .add(authority.clone())
            .map_err(|error| unusable(&error))?;
    }
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    Ok((authorities, verifier.map_err(|error| unusable(&error))?))
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
    fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
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

fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let text = read(path)?;
    let has = |marker: &[u8]| text.windows(marker.len()).any(|bytes| bytes == marker);
    if has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED") {
        return Err(format!(
            "{} is encrypted: decrypt it with `openssl pkey`",
            path.display()
        ));
    }
    // The error of the library can contain a line of the file.
    PrivateKeyDer::from_pem_slice(&text)
        .map_err(|_| format!("{} has no valid private key in PEM", path.display()))
}

impl TlsIdentity {
    /// End of the certificate.
    pub fn expires(&self) -> SystemTime {
        UNIX_EPOCH + self.expires
    }

    /// Whether an authority of clients has expired. The certificates that it has signed are still accepted.
    pub fn has_expired_authority(&self) -> bool {
        self.client_authorities
            .iter()
            .filter_map(|der| Certificate::from_der(der).ok())
            .any(|authority| UNIX_EPOCH + end(&authority) < SystemTime::now())
    }

    /// Length of the key in bits, if it is one of RSA.
    pub fn rsa_bits(&self) -> Option<usize> {
        let certificate = Certificate::from_der(&self.chain[0]).ok()?.tbs_certificate;
        let key = certificate.subject_public_key_info;
        if key.algorithm.oid != RSA {
            return None;
        }
        let [modulus, _exponent] =
            <[UintRef; 2]>::from_der(key.subject_public_key.raw_bytes()).ok()?;
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
