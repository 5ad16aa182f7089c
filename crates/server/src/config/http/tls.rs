//! The keys `http.tls.*`. The files are read and checked with the configuration: a start, `check-config` and SIGHUP
//! report a certificate, a key or an authority that cannot be used as an error of its key. A certificate that has
//! expired is a warning, so that a renewal is possible while the service runs.

use animal_store_adapters_http::{CurrentTlsIdentity, TlsFiles, TlsFilesError};

use crate::config::{
    key::{Key, keys},
    values::{Values, path},
};

keys! {
    CERT_FILE: new("http.tls.cert_file", "",
        "PEM file with the certificate of the API, followed by those of its intermediate authorities. With it, the API \
         is served by HTTPS only. Requires `http.tls.key_file`. SIGHUP reloads the files, and a change of their \
         content is noticed within seconds. Empty: no TLS.");
    KEY_FILE: new("http.tls.key_file", "", "PEM file with the private key of the certificate, not encrypted.");
    CLIENT_CA_FILE: new("http.tls.client_ca_file", "",
        "PEM file with certificate authorities. Clients must have a certificate that one of them has signed, and an \
         API key as well. Empty: clients need no certificate.");
    HANDSHAKE_TIMEOUT: new("http.tls.handshake_timeout", "5s", "Timeout of a TLS handshake.");
}

#[derive(Debug)]
pub(crate) struct TlsConfig {
    pub(crate) files: TlsFiles,
    /// What the files contained when the configuration was read.
    pub(crate) identity: CurrentTlsIdentity,
}

impl TlsConfig {
    /// Reads the files, if they are set. Adds an error if one of them cannot be used.
    pub(super) fn read(values: &mut Values) -> Option<Self> {
        let [certificate, private_key, client_authorities] =
            [&CERT_FILE, &KEY_FILE, &CLIENT_CA_FILE].map(|key| values.read(key, path));
        let together = "and http.tls.key_file must be set together";
        values.require(certificate.is_some() == private_key.is_some(), &[&CERT_FILE, &KEY_FILE], together);
        let is_complete = client_authorities.is_none() || certificate.is_some();
        values.require(is_complete, &[&CLIENT_CA_FILE, &CERT_FILE], "requires http.tls.cert_file");
        let files = TlsFiles { certificate: certificate?, private_key: private_key?, client_authorities };
        match files.load() {
            Ok(identity) => {
                if identity.remaining().is_none() {
                    values.add_warning(&CERT_FILE, "has expired: clients refuse it");
                }
                Some(Self { files, identity: CurrentTlsIdentity::new(identity) })
            }
            Err(error) => {
                let key = match &error {
                    TlsFilesError::Certificate(_) => &CERT_FILE,
                    TlsFilesError::PrivateKey(_) => &KEY_FILE,
                    TlsFilesError::ClientAuthorities(_) => &CLIENT_CA_FILE,
                };
                values.add_error(key, &format!("names a file that cannot be used: {error}"));
                None
            }
        }
    }
}
