use redis::{ClientTlsConfig, TlsCertificates};
use rustls::{
    Error as TlsError, RootCertStore,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use secrecy::{ExposeSecret, SecretString};

use super::error::RedisEndpointError::{self, Authority, Certificate, PrivateKey};

const INVALID_CERTIFICATE: &str = "contains a certificate that is not valid";

/// Certificates for TLS, in PEM.
#[derive(Debug, Clone, Default)]
pub struct RedisTls {
    /// Authorities that may have signed the server's certificate. `None`: the authorities of the system.
    pub authority: Option<String>,
    /// The client's certificate, for a server that requires one.
    pub client: Option<RedisClientCertificate>,
}

/// The certificate of a client, in PEM.
#[derive(Debug, Clone)]
pub struct RedisClientCertificate {
    /// The certificate, and those of the authorities between it and one that the server knows.
    pub certificate: String,
    /// Its private key.
    pub private_key: SecretString,
}

impl RedisTls {
    /// Checks the certificates, also if there is no URL to use them with. The driver reports an unusable certificate
    /// when it connects, or not at all.
    ///
    /// # Errors
    /// The first one that cannot be used.
    pub fn check(&self) -> Result<(), RedisEndpointError> {
        if let Some(authority) = &self.authority {
            check_authority(authority)?;
        }
        if let Some(client) = &self.client {
            check_client(client)?;
        }
        Ok(())
    }

    pub(super) fn certificates(self) -> Result<TlsCertificates, RedisEndpointError> {
        self.check()?;
        let client_tls = self.client.map(|client| ClientTlsConfig {
            client_cert: client.certificate.into_bytes(),
            client_key: client.private_key.expose_secret().as_bytes().to_vec(),
        });
        Ok(TlsCertificates {
            root_cert: self.authority.map(String::into_bytes),
            client_tls,
        })
    }
}

fn check_authority(text: &str) -> Result<(), RedisEndpointError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(text).map_err(Authority)? {
        let added = store.add(certificate);
        added.map_err(|_| Authority(INVALID_CERTIFICATE))?;
    }
    Ok(())
}

fn check_client(client: &RedisClientCertificate) -> Result<(), RedisEndpointError> {
    let chain = certificates(&client.certificate).map_err(Certificate)?;
    let pem = client.private_key.expose_secret();
    let Ok(key) = PrivateKeyDer::from_pem_slice(pem.as_bytes()) else {
        return Err(PrivateKey(
            "contains no private key in PEM format; a key that is protected by a password is not supported",
        ));
    };
    match CertifiedKey::from_der(chain, key, &default_provider()) {
        Ok(_) => Ok(()),
        Err(TlsError::InconsistentKeys(_)) => Err(PrivateKey(
            "contains the private key of another certificate",
        )),
        Err(TlsError::InvalidCertificate(_)) => Err(Certificate(INVALID_CERTIFICATE)),
        Err(_) => Err(PrivateKey(
            "contains a private key that is not valid, or not of a supported kind",
        )),
    }
}

/// Returns the certificates in a text: at least one. The parser's own messages repeat parts of the text.
fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        certificates.push(certificate.map_err(|_| INVALID_CERTIFICATE)?);
    }
    if certificates.is_empty() {
        return Err("contains no certificate in PEM format");
    }
    Ok(certificates)
}
