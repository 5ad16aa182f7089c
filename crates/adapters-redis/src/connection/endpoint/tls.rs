//! Certificates for TLS. The driver reports an unusable certificate when it connects, or not at all: they are checked
//! before.

use redis::{ClientTlsConfig, TlsCertificates};
use rustls::{
    Error, RootCertStore,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use secrecy::{ExposeSecret, SecretString};

use super::error::RedisEndpointError::{self, Authority, Certificate, PrivateKey};

/// Certificates for TLS, in PEM.
#[derive(Debug, Default)]
pub struct RedisTls {
    /// Authorities that may have signed the server's certificate. `None`: the authorities of the system.
    pub authority: Option<String>,
    /// The client's certificate and its private key, for a server that requires them.
    pub client: Option<(String, SecretString)>,
}

impl RedisTls {
    pub(super) const fn is_empty(&self) -> bool {
        self.authority.is_none() && self.client.is_none()
    }

    /// Checks the certificates, also if there is no URL to use them with.
    ///
    /// # Errors
    /// The first one that cannot be used.
    pub fn check(&self) -> Result<(), RedisEndpointError> {
        if let Some(authority) = &self.authority {
            check_authority(authority)?;
        }
        if let Some((certificate, key)) = &self.client {
            check_client(certificate, key)?;
        }
        Ok(())
    }

    pub(super) fn certificates(self) -> Result<TlsCertificates, RedisEndpointError> {
        self.check()?;
        let client_tls = self.client.map(|(certificate, key)| ClientTlsConfig {
            client_cert: certificate.into_bytes(),
            client_key: key.expose_secret().as_bytes().to_vec(),
        });
        Ok(TlsCertificates { root_cert: self.authority.map(String::into_bytes), client_tls })
    }
}

fn check_authority(text: &str) -> Result<(), RedisEndpointError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(text).map_err(Authority)? {
        store.add(certificate).map_err(|_| Authority(INVALID_CERTIFICATE))?;
    }
    Ok(())
}

fn check_client(certificate: &str, key: &SecretString) -> Result<(), RedisEndpointError> {
    let chain = certificates(certificate).map_err(Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes()).map_err(|_| {
        PrivateKey("contains no private key in PEM format; a key that is protected by a password is not supported")
    })?;
    let key = default_provider().key_provider.load_private_key(key);
    let key = key.map_err(|_| PrivateKey("contains a private key that is not valid, or not of a supported kind"))?;
    match CertifiedKey::new(chain, key).keys_match() {
        Ok(()) => Ok(()),
        Err(Error::InconsistentKeys(_)) => Err(PrivateKey("contains the private key of another certificate")),
        Err(_) => Err(Certificate(INVALID_CERTIFICATE)),
    }
}

const INVALID_CERTIFICATE: &str = "contains a certificate that is not valid";

/// Returns the certificates in a text: at least one. The parser's own messages repeat parts of the text.
fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let certificates = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|_| INVALID_CERTIFICATE)?;
    if certificates.is_empty() { Err("contains no certificate in PEM format") } else { Ok(certificates) }
}
