//! Encryption, with libpq's meanings of `sslmode`.

use std::sync::Arc;

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What is asked of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Nothing: only who listens is kept out.
    Nothing,
    /// That an authority signed it.
    Authority,
    /// That an authority signed it, for the name that was connected to.
    AuthorityAndName,
}

/// Who may have signed certificates.
pub(crate) enum Roots {
    System,
    /// These, in PEM.
    Pem(Vec<u8>),
}

/// Makes encrypted connections that check so much.
pub(crate) fn connector(check: Check, roots: Roots) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let webpki = match check {
        Check::Nothing => None,
        Check::Authority | Check::AuthorityAndName => {
            let roots = Arc::new(roots.load()?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
            Some(verifier.map_err(|error| error.to_string())?)
        }
    };
    let verifier = Arc::new(Verifier { check, webpki, provider });
    let config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

impl Roots {
    fn load(self) -> Result<RootCertStore, String> {
        let mut store = RootCertStore::empty();
        let (added, _) = store.add_parsable_certificates(match self {
            Self::System => rustls_native_certs::load_native_certs().certs,
            Self::Pem(text) => {
                let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
                certificates.map_err(|error| error.to_string())?
            }
        });
        if added == 0 { Err("there is no certificate of an authority".to_owned()) } else { Ok(store) }
    }
}

#[derive(Debug)]
struct Verifier {
    check: Check,
    webpki: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(webpki) = &self.webpki else { return Ok(ServerCertVerified::assertion()) };
        match webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last: whoever signed has been checked by then.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == Check::Authority => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
