use std::{fs, process::Command};

use animal_store_test_servers::Certificates;
use nix::{sys::stat::Mode, unistd::mkfifo};
use tempfile::TempDir;

use super::*;

/// A certificate of X.509 version 1, which has no extensions.
const VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----
MIIBFzCBvwIUB3ncCAe57l52ipyQG0bZ4jYwJFcwCgYIKoZIzj0EAwIwDjEMMAoG
A1UEAwwDb3duMCAXDTI2MTEyOTAxNTM0NVoYDzIxMjYxMTA1MDE1MzQ1WjAOMQww
CgYDVQQDDANvd24wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT2ZOj58gvTzACd
Xn7R8RkwsL8SYIcK0s5f+VCJ/gIhK9lrHi/2fyc6SddNGtzbhvomDHWI3Y5pg0Yr
dhMyJGpfMAoGCCqGSM49BAMCA0cAMEQCIBHdjqlif0MeVXogyuGLOuERP7azzUGI
ZBFrFO65hJieAiBwbMn8bnzFPib+kU8aiyJStAxUX72XvnGwrG4a6i0NgQ==
-----END CERTIFICATE-----
";

fn files(certificates: &Certificates) -> TlsFiles {
    TlsFiles {
        certificate: certificates.server.clone(),
        private_key: certificates.server_key.clone(),
        client_authorities: Some(certificates.authority.clone()),
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_the_reason_and_without_its_text() {
    let folder = TempDir::new().unwrap();
    let certificates = Certificates::make(folder.path());
    let good = files(&certificates);
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let encrypted = write(
        "encrypted",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED",
    );
    let legacy = write(
        "legacy",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nc2VjcmV0",
    );
    let cut = write("cut", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n");
    let invalid = write(
        "invalid",
        "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n",
    );
    let chain = write(
        "chain",
        "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n",
    );
    let certificate = |path: &Path| TlsFiles {
        certificate: path.to_owned(),
        ..good.clone()
    };
    let key = |path: &Path| TlsFiles {
        private_key: path.to_owned(),
        ..good.clone()
    };
    let authorities = |path: &Path| TlsFiles {
        client_authorities: Some(path.to_owned()),
        ..good.clone()
    };
    for (files, expected) in [
        (
            certificate(Path::new("/nowhere")),
            "Certificate: /nowhere cannot be read: No such file",
        ),
        (
            certificate(&certificates.server_key),
            "Certificate: …server-key.pem has no valid certificate in PEM",
        ),
        (
            certificate(&write("empty", "")),
            "Certificate: …empty has no valid certificate in PEM",
        ),
        (certificate(&chain), "Certificate: …chain is not valid: "),
        (
            key(Path::new("/nowhere")),
            "PrivateKey: /nowhere cannot be read: No such file",
        ),
        (
            key(&certificates.server),
            "PrivateKey: …server.pem has no valid private key in PEM",
        ),
        (
            key(&cut),
            "PrivateKey: …cut has no valid private key in PEM",
        ),
        (key(&invalid), "PrivateKey: …invalid is damaged or of "),
        (
            key(&encrypted),
            "PrivateKey: …encrypted is encrypted: decrypt it with `openssl pkey`",
        ),
        (key(&legacy), "PrivateKey: …legacy is encrypted: "),
        (
            key(&certificates.client_key),
            "PrivateKey: …client-key.pem is not the private key of …server.pem",
        ),
        (
            authorities(Path::new("/nowhere")),
            "ClientAuthorities: /nowhere cannot be read: No such file",
        ),
        (
            authorities(&certificates.server_key),
            "ClientAuthorities: …server-key.pem has no valid certificate",
        ),
        (
            authorities(&chain),
            "ClientAuthorities: …chain cannot be used: ",
        ),
    ] {
        let error = files.load().expect_err(expected);
        let variant = match &error {
            TlsFilesError::Certificate(_) => "Certificate",
            TlsFilesError::PrivateKey(_) => "PrivateKey",
            TlsFilesError::ClientAuthorities(_) => "ClientAuthorities",
        };
        let text =
            format!("{variant}: {error}").replace(&format!("{}/", folder.path().display()), "…");
        assert!(text.starts_with(expected), "{text}\n{expected}");
        assert!(
            !text.contains("secret") && !text.contains("c2VjcmV0"),
            "{text}"
        );
    }
}

#[test]
fn a_pipe_is_refused_without_a_wait_for_its_writer() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let files = TlsFiles {
        certificate: pipe,
        ..files(&Certificates::make(folder.path()))
    };
    let reason = files.load().unwrap_err().to_string();
    assert!(reason.ends_with("pipe cannot be read: it is not a regular file"));
}

#[test]
fn an_identity_has_the_end_of_its_certificate_and_shows_no_key() {
    let folder = TempDir::new().unwrap();
    let end = UNIX_EPOCH + Duration::from_hours(438_288);
    let identity = files(&Certificates::make_until(folder.path(), end))
        .load()
        .unwrap();

    assert_eq!((identity.expires(), identity.remaining()), (end, None));
    assert_eq!(
        format!("{identity:?}"),
        "TlsIdentity { expires: 1577836800s, .. }"
    );
}

/// Makes a certificate with OpenSSL, which has signed itself, and its key.
fn self_signed(folder: &Path, options: &[&str]) -> TlsFiles {
    let [certificate, private_key] = ["own.pem", "own-key.pem"].map(|name| folder.join(name));
    let output = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-subj", "/CN=own", "-days", "1"])
        .arg("-out")
        .arg(&certificate)
        .arg("-keyout")
        .arg(&private_key)
        .args(options)
        .output()
        .expect("OpenSSL is installed");
    assert!(output.status.success(), "{output:?}");
    TlsFiles {
        certificate,
        private_key,
        client_authorities: None,
    }
}

#[test]
fn only_a_key_of_rsa_has_a_length() {
    let folder = TempDir::new().unwrap();
    for (algorithm, bits) in [
        (&["rsa:2048"][..], Some(2048)),
        (&["rsa:3072"], Some(3072)),
        (&["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], None),
        (&["ed25519"], None),
    ] {
        let options = [&["-newkey"], algorithm].concat();
        let files = self_signed(folder.path(), &options);
        assert_eq!(files.load().unwrap().rsa_bits(), bits, "{algorithm:?}");
    }
}

#[test]
fn the_kinds_of_keys_that_are_supported_are_named_for_any_other_key() {
    let folder = TempDir::new().unwrap();
    for algorithm in [
        &["rsa:1024"][..],
        &["ec", "-pkeyopt", "ec_paramgen_curve:P-521"],
        &["ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
    ] {
        let options = [&["-newkey"], algorithm].concat();
        let files = self_signed(folder.path(), &options);
        let error = files.load().unwrap_err().to_string();
        let expected = "own-key.pem is damaged or of no supported kind: RSA from 2048 to 4096 bits, P-256, P-384 or Ed25519";
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn a_certificate_without_extensions_is_refused_by_its_version() {
    let folder = TempDir::new().unwrap();
    let mut files = files(&Certificates::make(folder.path()));
    files.certificate = folder.path().join("version-1");
    fs::write(&files.certificate, VERSION_1).unwrap();
    let error = files.load().unwrap_err().to_string();
    assert!(error.ends_with("X.509 version 3 is required"), "{error}");
}

#[test]
fn an_authority_of_clients_may_sign_others_and_an_expired_one_is_noticed() {
    let folder = TempDir::new().unwrap();
    let certificates = Certificates::make(folder.path());
    let load = |authority: &Path| {
        let files = TlsFiles {
            client_authorities: Some(authority.to_owned()),
            ..files(&certificates)
        };
        files
            .load()
            .map(|identity| identity.has_expired_authority())
    };
    assert_eq!(load(&certificates.authority), Ok(false));

    let [authority, leaf] = [&certificates.authority, &certificates.client]
        .map(|path| fs::read_to_string(path).unwrap());
    let bundle = folder.path().join("bundle.pem");
    fs::write(&bundle, authority + &leaf).unwrap();
    for file in [&certificates.client, &bundle] {
        let error = load(file).expect_err("a leaf").to_string();
        let expected = format!("{} cannot be used: CN=client", file.display());
        assert!(error.starts_with(&expected), "{error}");
    }

    let strangers = TempDir::new().unwrap();
    let end = SystemTime::now() - Duration::from_hours(1);
    let expired = Certificates::make_until(strangers.path(), end).authority;
    assert_eq!(load(&expired), Ok(true));

    let constraints = |text| ["-newkey", "ed25519", "-addext", text];
    for (constraints, is_authority) in [
        (constraints("basicConstraints=critical,CA:TRUE"), true),
        (constraints("basicConstraints=critical,CA:FALSE"), false),
    ] {
        let own = self_signed(folder.path(), &constraints).certificate;
        assert_eq!(load(&own).is_ok(), is_authority, "{constraints:?}");
    }
}
