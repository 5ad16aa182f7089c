//! TLS connections, with libpq's levels of certificate checks.

use std::{fs, path::PathBuf, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        ServerCertVerifierBuilder, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Check of the server's certificate. Without a check, TLS protects against passive listeners only.
pub(super) struct CertificateCheck {
    pub(super) authorities: Authorities,
    pub(super) name: bool,
}

pub(super) enum Authorities {
    Any,
    /// The authorities that the operating system trusts.
    System,
    /// The authorities in a PEM file.
    File(PathBuf),
}

/// Returns a connector with this check, or the reason why the authorities cannot be used.
pub(super) fn connector(check: CertificateCheck) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let roots = check.authorities.load()?;
    let verifier = roots.map(|roots| WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(&provider)));
    let webpki = verifier.map(ServerCertVerifierBuilder::build).transpose().map_err(|error| error.to_string())?;
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { webpki, check_name: check.name, provider }))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

impl Authorities {
    fn load(self) -> Result<Option<RootCertStore>, String> {
        let (source, certificates) = match self {
            Self::Any => return Ok(None),
            Self::System => ("the system".to_owned(), rustls_native_certs::load_native_certs().certs),
            Self::File(path) => {
                let file = path.display().to_string();
                let text = fs::read(path).map_err(|error| format!("{file} cannot be read: {error}"))?;
                let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
                (file.clone(), certificates.map_err(|error| format!("{file} is not valid PEM: {error}"))?)
            }
        };
        let mut store = RootCertStore::empty();
        let (added, _) = store.add_parsable_certificates(certificates);
        if added == 0 { Err(format!("{source} has no certificate of an authority")) } else { Ok(Some(store)) }
    }
}

#[derive(Debug)]
struct Verifier {
    /// `None` accepts every certificate.
    webpki: Option<Arc<WebPkiServerVerifier>>,
    check_name: bool,
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
            // The name is checked last, after the signatures.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.check_name => Ok(ServerCertVerified::assertion()),
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
