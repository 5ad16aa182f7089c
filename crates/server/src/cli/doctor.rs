//! `animal-store doctor`: reads the configured file, connects to the configured PostgreSQL and Redis, and prints a
//! finding per line on standard output.

use std::{iter, time::Duration};

use animal_store_adapters_http::TlsIdentity;
use animal_store_adapters_redis::{diagnose, diagnose_administration};
use animal_store_app::{Finding, Verdict};
use anyhow::ensure;
use humantime::format_rfc3339_seconds;
use serde_json::{Value, json};

use super::{
    command::{print, table},
    copy::read_stores,
    encryption,
};
use crate::config::{self, KeysConfig, Sources, SqliteConfig, StorageConfig, read_tls};

/// A certificate that ends within this time is a warning.
const RENEWAL_TIME: Duration = Duration::from_hours(14 * 24);
/// A longer RSA key makes each handshake slow.
const MAX_RSA_BITS: usize = 2048;
/// The names of the verdicts, the best first.
const VERDICTS: [&str; 4] = ["ok", "unknown", "warning", "error"];

pub(super) async fn run(json: bool, sources: &Sources) -> anyhow::Result<()> {
    let ((storage, keys), warnings) = config::load(sources, |values| {
        Some((read_stores(values)?, values.warnings.clone()))
    })?;
    // No dependency waits for the timeouts of the other one.
    let (in_storage, in_keys) = tokio::join!(
        examine_storage(&storage, &keys),
        examine_keys(&keys, &storage)
    );
    let warnings = warnings
        .iter()
        .map(|text| Finding::warning("configuration", text.as_str(), "see docs/configuration.md"));
    let findings: Vec<_> = warnings
        .chain(examine_tls(sources))
        .chain(encryption::examine(&storage, &keys))
        .chain(in_storage)
        .chain(in_keys)
        .collect();
    print(if json {
        as_json(&findings)?
    } else {
        as_text(&findings)
    })?;
    let errors = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Error)
        .count();
    ensure!(errors == 0, "errors found: {errors}");
    Ok(())
}

async fn examine_storage(storage: &StorageConfig, keys: &KeysConfig) -> Vec<Finding> {
    match storage {
        StorageConfig::Sqlite(sqlite) => examine_file(sqlite).await,
        StorageConfig::Memory { .. } => vec![Finding::warning(
            "storage.backend",
            "memory: pets are lost when the process ends, and instances do not share them",
            "set storage.backend to sqlite or postgres, unless this is a test",
        )],
        StorageConfig::Postgres(postgres) => {
            let (endpoint, direct) = (&postgres.endpoint, &postgres.migrate_endpoint);
            let has_api_keys = matches!(keys, KeysConfig::Postgres(_));
            animal_store_adapters_postgres::diagnose(
                endpoint,
                direct,
                &postgres.settings,
                has_api_keys,
            )
            .await
        }
    }
}

async fn examine_keys(keys: &KeysConfig, storage: &StorageConfig) -> Vec<Finding> {
    match keys {
        // Examined as the storage.
        KeysConfig::Postgres(_) => Vec::new(),
        KeysConfig::Sqlite(_) if matches!(storage, StorageConfig::Sqlite(_)) => Vec::new(),
        KeysConfig::Sqlite(sqlite) => examine_file(sqlite).await,
        KeysConfig::Memory { tokens } if tokens.is_empty() => vec![Finding::warning(
            "keys.backend",
            "memory without tokens: a start on a terminal generates a key, and any other has none",
            "set keys.memory.tokens or keys.backend, unless this is a test",
        )],
        KeysConfig::Memory { tokens } => {
            let found = format!(
                "memory: {} tokens, which only a restart can revoke",
                tokens.len()
            );
            vec![Finding::ok("keys.backend", found)]
        }
        KeysConfig::Redis(redis) => {
            let mut findings = diagnose(&redis.endpoint, &redis.directory).await;
            if let Some(endpoint) = &redis.admin_endpoint {
                findings.push(diagnose_administration(endpoint, &redis.directory).await);
            }
            findings
        }
    }
}

async fn examine_file(sqlite: &SqliteConfig) -> Vec<Finding> {
    animal_store_adapters_sqlite::diagnose(&sqlite.path, sqlite.settings.timeout).await
}

/// Examines the certificates, if there are some. They do not keep the stores from being examined.
fn examine_tls(sources: &Sources) -> Vec<Finding> {
    match config::load(sources, |values| Some(read_tls(values))) {
        Ok(None) => Vec::new(),
        Ok(Some(tls)) => examine_identity(&tls.get()),
        Err(error) => vec![Finding::error(
            "http.tls",
            error.one_line(),
            "correct the files or the keys",
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
    let (subject, advice) = (
        "http.tls",
        "renew the certificate: a running service notices its files",
    );
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

/// A line per finding, and a line for its advice.
fn as_text(findings: &[Finding]) -> String {
    let rows = findings.iter().flat_map(
        |Finding {
             subject,
             verdict,
             found,
             advice,
         }| {
            let finding = [
                VERDICTS[*verdict as usize].to_owned(),
                (*subject).to_owned(),
                found.clone(),
            ];
            let advice = advice
                .iter()
                .map(|advice| [String::new(), String::new(), format!("-> {advice}")]);
            iter::once(finding).chain(advice)
        },
    );
    table(&rows.collect::<Vec<_>>())
}

/// A document with the worst verdict and all findings.
fn as_json(findings: &[Finding]) -> serde_json::Result<String> {
    let worst = findings
        .iter()
        .map(|finding| finding.verdict)
        .max()
        .unwrap_or(Verdict::Ok);
    let findings: Vec<Value> = findings
        .iter()
        .map(|Finding { subject, verdict, found, advice }| {
            json!({ "subject": subject, "verdict": VERDICTS[*verdict as usize], "found": found, "advice": advice })
        })
        .collect();
    Ok(serde_json::to_string_pretty(
        &json!({ "verdict": VERDICTS[worst as usize], "findings": findings }),
    )? + "\n")
}
