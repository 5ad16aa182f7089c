//! `animal-store doctor`: reads the configured file, connects to the configured PostgreSQL and Redis, and examines the
//! certificates.

use std::time::Duration;

use animal_store_adapters_cli::doctor::{self, DoctorArgs};
use animal_store_app::Finding;
use animal_store_http1::TlsIdentity;
use animal_store_settings::SettingsError;
use humantime::format_rfc3339_seconds;

use crate::{
    config::{self, Sources, Stores, read_tls_identity},
    wiring::{diagnose, exposures},
};

/// A certificate that ends within this time is a warning.
const RENEWAL_TIME: Duration = Duration::from_hours(14 * 24);
/// A longer RSA key makes each handshake slow.
const MAX_RSA_BITS: usize = 2048;

pub(super) async fn run(args: &DoctorArgs, sources: &Sources) -> anyhow::Result<()> {
    let mut values = config::read(sources);
    let stores = values.open(Stores::read)?;
    let tls = examine_tls(values.open(|values| Some(read_tls_identity(values))));
    let mut findings = Vec::new();
    for warning in values.warnings() {
        let advice = "see docs/configuration.md";
        findings.push(Finding::warning("configuration", warning, advice));
    }
    findings.extend(tls);
    findings.extend(exposures(&stores));
    findings.extend(diagnose(&stores).await);
    doctor::run(args, &findings)
}

/// Examines the certificates, if there are some. They do not keep the stores from being examined.
fn examine_tls(tls: Result<Option<TlsIdentity>, SettingsError>) -> Vec<Finding> {
    match tls {
        Ok(None) => Vec::new(),
        Ok(Some(identity)) => examine_identity(&identity),
        Err(error) => vec![Finding::error(
            "http.tls",
            error.one_line(),
            "correct the files or the settings",
        )],
    }
}

fn examine_identity(identity: &TlsIdentity) -> Vec<Finding> {
    let mut findings = vec![examine_certificate(identity)];
    if let Some(bits) = identity.rsa_bits().filter(|&bits| bits > MAX_RSA_BITS) {
        findings.push(Finding::warning(
            "http.tls.key",
            format!("RSA with {bits} bits: a handshake takes milliseconds of CPU"),
            "use a key on the curve P-256, or RSA with 2048 bits",
        ));
    }
    if identity.has_expired_authority() {
        findings.push(Finding::warning(
            "http.tls.client_ca",
            "an authority of clients has expired: its certificates are still accepted",
            "replace it in http.tls.client_ca_file",
        ));
    }
    findings
}

fn examine_certificate(identity: &TlsIdentity) -> Finding {
    let subject = "http.tls";
    let advice = "renew the certificate: a running service notices its files";
    let end = format_rfc3339_seconds(identity.expires());
    match identity.remaining() {
        None => Finding::error(
            subject,
            format!("the certificate has expired at {end}"),
            advice,
        ),
        Some(time) if time < RENEWAL_TIME => {
            Finding::warning(subject, format!("the certificate ends at {end}"), advice)
        }
        Some(_) => Finding::ok(
            subject,
            format!("the key fits the certificate, which ends at {end}"),
        ),
    }
}
