//! TLS connections, with libpq's levels of certificate checks.

use std::{path::Path, sync::Arc};

use animal_store_small_files::read;
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

/// Check of the server's certificate.
pub(super) struct CertificateCheck {
    /// A PEM file with authorities, or `system`: those that the operating system trusts. `None` accepts every
    /// certificate, which protects against passive listeners only.
    pub(super) roots: Option<String>,
    pub(super) checks_name: bool,
}

/// Returns a connector with this check, or the reason why the authorities cannot be used.
pub(super) fn connector(check: &CertificateCheck) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let roots = check.roots.as_deref().map(load).transpose()?;
    let verifier = roots.map(|roots| {
        WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(&provider))
    });
    let webpki = verifier
        .map(ServerCertVerifierBuilder::build)
        .transpose()
        .map_err(|error| error.to_string())?;
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier {
            webpki,
            checks_name: check.checks_name,
            provider,
        }))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn load(source: &str) -> Result<RootCertStore, String> {
    let certificates = if source == "system" {
        rustls_native_certs::load_native_certs().certs
    } else {
        let text =
            read(Path::new(source)).map_err(|error| format!("{source} cannot be read: {error}"))?;
        let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>();
        certificates.map_err(|error| format!("{source} is not valid PEM: {error}"))?
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates);
    if added == 0 {
        Err(format!("{source} has no certificate of an authority"))
    } else {
        Ok(store)
    }
}

#[derive(Debug)]
struct Verifier {
    /// `None` accepts every certificate.
    webpki: Option<Arc<WebPkiServerVerifier>>,
    checks_name: bool,
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
        let Some(webpki) = &self.webpki else {
            return Ok(ServerCertVerified::assertion());
        };
        match webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        {
            // The name is checked last, after the signatures.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
