//! The part of `animal-store doctor` about PostgreSQL.
//!
//! **Problem.** A missing permission, a standby or a setting is found by the first request that needs it, or by the
//! crash that loses a pet.
//!
//! **Invariant.** The diagnosis changes nothing: permissions are queried, not tried. Each wait has a timeout. A subject
//! that cannot be examined hides no other, unless the connection is lost.
//!
//! **Proof.** `tests/postgres/diagnosis.rs` (each finding, nothing changed); `crates/server/tests/process/doctor.rs`
//! (an unavailable PostgreSQL, secrets).

use animal_store_app::Finding;
use tokio_postgres::{Error, Row};

use crate::{
    MigrationError, Migrations, PgEndpoint, PostgresSettings, SchemaMode,
    connection::application_name,
    error::{ConnectionError, within},
    permissions::{self, Needed},
};

const CONNECTION: &str = "postgres.connection";
const PERMISSIONS: &str = "postgres.permissions";

/// What the service needs.
const NEEDED: [Needed; 3] =
    [("pets", "SELECT, INSERT"), ("idempotency_keys", "SELECT, INSERT, UPDATE, DELETE"), ("pets_id_seq", "USAGE")];

const ROLE: &str = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')";

/// The settings by which a crash can lose what was confirmed.
const DURABILITY: &str = "
    SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')";

/// A query about a subject, and its finding.
type Check = (&'static str, String, fn(&[Row]) -> Result<Finding, Error>);

/// Examines a database for an instance. `direct` leads to the same database for migrations. The number of statements is
/// fixed, and each ends within the timeouts of the settings.
pub async fn diagnose(endpoint: &PgEndpoint, direct: &PgEndpoint, settings: &PostgresSettings) -> Vec<Finding> {
    let named = endpoint.clone().with_application_name(&application_name(settings.transaction_pooling));
    let (client, _task) = match named.connect(settings.connect_timeout).await {
        Ok(connected) => connected,
        Err(error) => return vec![connection_finding(&error)],
    };
    let mut findings = vec![Finding::ok(CONNECTION, endpoint.login())];
    let migrations = Migrations::new(direct.clone(), settings.connect_timeout);
    let (schema, is_pending) = schema_finding(&migrations, settings.schema).await;
    findings.push(schema);
    let mut checks: Vec<Check> = vec![
        ("postgres.role", ROLE.to_owned(), role_finding),
        ("postgres.durability", DURABILITY.to_owned(), durability_finding),
    ];
    if is_pending {
        findings.push(Finding::unknown(PERMISSIONS, "tables may be missing", "run the pending migrations first"));
    } else {
        checks.push((PERMISSIONS, permissions::query(&NEEDED), permissions_finding));
    }
    for (subject, sql, judge) in checks {
        // Nothing is prepared, so this works through any pooler.
        let rows = within(settings.timeout, client.query_typed(&sql, &[])).await;
        match rows.and_then(|rows| Ok(judge(&rows)?)) {
            Ok(finding) => findings.push(finding),
            Err(error) if client.is_closed() || matches!(error, ConnectionError::NoResponse) => {
                let advice = "check the load of PostgreSQL and the network, and run the command again";
                findings.push(Finding::error(subject, error.to_string(), advice));
                break;
            }
            Err(error) => {
                let found = format!("not examined: {error}");
                findings.push(Finding::unknown(subject, found, "resolve this error, and run the command again"));
            }
        }
    }
    findings
}

fn connection_finding(error: &ConnectionError) -> Finding {
    let advice = if error.is_about_the_encoding() {
        "create a database WITH ENCODING 'UTF8', and restore the data into it"
    } else {
        "check storage.postgres.url, and whether PostgreSQL runs and accepts the user"
    };
    Finding::error(CONNECTION, error.to_string(), advice)
}

/// Returns the finding, and whether migrations are pending.
async fn schema_finding(migrations: &Migrations, mode: SchemaMode) -> (Finding, bool) {
    let subject = "postgres.migrations";
    let comparison = match migrations.comparison().await {
        Ok(comparison) => comparison,
        Err(error) => {
            let advice = match error {
                MigrationError::OlderLayout => "move the pets as described, or choose an empty database",
                MigrationError::Contracted(_) => "run the release that made these changes, or a later one",
                _ => "check storage.postgres.migrate_url, and the permission SELECT ON __diesel_schema_migrations",
            };
            return (Finding::error(subject, error.to_string(), advice), false);
        }
    };
    let pending = format!("these migrations are pending: {}", comparison.pending.join(", "));
    let is_pending = !comparison.pending.is_empty();
    let finding = match (is_pending, mode, comparison.newer.is_empty()) {
        (true, SchemaMode::Migrate, _) => {
            Finding::warning(subject, pending, "the next start runs them; so does `animal-store migrate`")
        }
        (true, SchemaMode::Check, _) => {
            Finding::error(subject, pending + "; the service does not start", "run `animal-store migrate`")
        }
        (false, _, false) => {
            let found = format!("a newer program has expanded the schema: {}", comparison.newer.join(", "));
            Finding::warning(subject, found, "upgrade this program when the rolling restart allows it")
        }
        (false, _, true) => Finding::ok(subject, "none is pending"),
    };
    (finding, is_pending)
}

fn permissions_finding(rows: &[Row]) -> Result<Finding, Error> {
    let advice = "run these statements as the owner of the tables; if a table is not found, check the search_path, and \
                  the permission USAGE on the schema of the tables";
    Ok(match permissions::missing(rows)? {
        None => Finding::ok(PERMISSIONS, "pets can be read and added"),
        Some(missing) => Finding::error(PERMISSIONS, missing, advice),
    })
}

fn role_finding(rows: &[Row]) -> Result<Finding, Error> {
    let subject = "postgres.role";
    let (is_standby, read_only): (bool, &str) = (rows[0].try_get(0)?, rows[0].try_get(1)?);
    let found = match (is_standby, read_only) {
        (true, _) => "the server is a standby: creates get 503",
        (false, "on") => "transactions are read-only: creates get 503",
        _ => return Ok(Finding::ok(subject, "primary")),
    };
    let advice = "connect to the primary, for example with target_session_attrs=read-write in the URL; \
                  default_transaction_read_only must be off";
    Ok(Finding::error(subject, found, advice))
}

fn durability_finding(rows: &[Row]) -> Result<Finding, Error> {
    let subject = "postgres.durability";
    let mut off: Vec<&str> = Vec::new();
    for row in rows {
        if row.try_get::<_, &str>(1)? == "off" {
            off.push(row.try_get(0)?);
        }
    }
    let (found, advice) = (format!("off: {}", off.join(", ")), format!("set {} = on", off.join(" = on, ")));
    Ok(match off.as_slice() {
        [] => Finding::ok(subject, "a crash loses no pet"),
        ["synchronous_commit"] => {
            Finding::warning(subject, found + "; a crash can lose pets that were confirmed with 201", advice)
        }
        _ => Finding::error(subject, found + "; a crash of the machine can destroy the database", advice),
    })
}
