//! TLS connections, with libpq's levels of certificate checks.

use std::{path::Path, sync::Arc};

use animal_store_small_files::read;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
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
    let trusted = check.roots.as_deref().map(load).transpose()?;
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier {
            trusted,
            checks_name: check.checks_name,
            provider,
        }))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn load(source: &str) -> Result<Trusted, String> {
    let certificates: Vec<_> = if source == "system" {
        rustls_native_certs::load_native_certs().certs
    } else {
        let text =
            read(Path::new(source)).map_err(|error| format!("{source} cannot be read: {error}"))?;
        let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>();
        certificates.map_err(|error| format!("{source} is not valid PEM: {error}"))?
    };
    let mut authorities = RootCertStore::empty();
    let (added, _) = authorities.add_parsable_certificates(certificates.iter().cloned());
    if added == 0 {
        Err(format!("{source} has no certificate of an authority"))
    } else {
        Ok(Trusted {
            authorities,
            certificates,
        })
    }
}

#[derive(Debug)]
struct Trusted {
    authorities: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusted {
    /// Fails unless an authority has signed the certificate. A self-signed one is usually that of an authority, which
    /// no other server may have; it is accepted if it is one of those that are trusted.
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        provider: &CryptoProvider,
    ) -> Result<(), Error> {
        let checked = verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.authorities,
            intermediates,
            now,
            provider.signature_verification_algorithms.all,
        );
        match checked {
            // The error of an authority has no name of its own. The dates are checked before it, and a certificate that
            // is trusted itself needs no other check.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.certificates.contains(end_entity) =>
            {
                Ok(())
            }
            result => result,
        }
    }
}

#[derive(Debug)]
struct Verifier {
    /// `None` accepts every certificate.
    trusted: Option<Trusted>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(trusted) = &self.trusted {
            trusted.check(end_entity, intermediates, now, &self.provider)?;
        }
        if self.checks_name {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
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
