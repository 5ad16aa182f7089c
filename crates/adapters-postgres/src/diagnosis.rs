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

mod findings;

use std::fmt::Display;

use animal_store_adapter_kit::SchemaComparison;
use animal_store_app::Finding;
use tokio_postgres::Client;

use crate::{
    MigrationError, Migrations, PgEndpoint, PostgresSettings, SchemaMode,
    checks::{
        ASYNCHRONOUS, NOT_DURABLE, READ_ONLY_REASON, ROW_SECURITY, UNFINISHED, missing_permissions,
        superfluous_permissions, texts,
    },
    connection::{OpenConnection, within},
    error::ConnectionError,
    pet_repository::FOR_PETS,
};

const CONNECTION: &str = "postgres.connection";
const MIGRATIONS: &str = "postgres.migrations";
const POOLER: &str = "postgres.pooler";
const SEQUENCE: &str = "postgres.sequence";
const PERMISSIONS: &str = "postgres.permissions";

/// Returns the server process of a connection.
const BACKEND: &str = "SELECT pg_backend_pid()::text";

/// What the service and its backups need for API keys, if they are in the database.
const FOR_API_KEYS: [(&str, &str); 7] = [
    ("api_keys", "SELECT"),
    ("api_key_tokens", "SELECT"),
    ("api_key_state", "SELECT"),
    ("api_key_marks", "SELECT"),
    ("api_key_uses", "SELECT, INSERT, UPDATE"),
    ("api_key_uses_since", "SELECT, INSERT"),
    ("api_key_changes", "SELECT"),
];

/// The permissions by which a user can lock a table.
const LOCKING: &str = "INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER, MAINTAIN";

/// What a user can hold up revocations with. A trigger on the uses runs in commands, as the owner of the tables.
const FOR_REVOCATIONS: [(&str, &str); 7] = [
    ("api_keys", LOCKING),
    ("api_key_tokens", LOCKING),
    ("api_key_state", LOCKING),
    ("api_key_marks", LOCKING),
    ("api_key_readings", LOCKING),
    ("api_key_changes", LOCKING),
    ("api_key_uses", "TRIGGER"),
];

/// A query that returns the problems of a subject.
struct Check {
    subject: &'static str,
    query: String,
    /// Returns what they mean for the subject.
    finding: fn(&'static str, &[String]) -> Finding,
}

/// Examines a database for an instance. `direct` leads to the same database for migrations. The number of statements is
/// fixed, and each ends within the timeouts of the settings.
pub async fn diagnose(
    endpoint: &PgEndpoint,
    direct: &PgEndpoint,
    settings: &PostgresSettings,
    has_api_keys: bool,
) -> Vec<Finding> {
    let named = endpoint.clone().named(settings.transaction_pooling);
    let opened = match connect(&named, settings).await {
        Ok(opened) => opened,
        Err(error) => {
            let advice = if error.is_about_the_encoding() {
                "create a database WITH ENCODING 'UTF8', and restore the data into it"
            } else {
                "check storage.postgres.url, and whether PostgreSQL runs and accepts the user"
            };
            return vec![Finding::error(CONNECTION, error.to_string(), advice)];
        }
    };
    let client = &opened.client;
    let mut findings = vec![Finding::ok(CONNECTION, endpoint.login())];
    if !settings.transaction_pooling {
        findings.push(pooler_finding(client, &named, settings).await);
    }
    let migrations = Migrations::new(direct.clone(), settings.connect_timeout);
    let comparison = migrations.comparison().await;
    let is_pending = comparison
        .as_ref()
        .is_ok_and(|comparison| !comparison.pending.is_empty());
    let obstacles = if is_pending && settings.schema == SchemaMode::Migrate {
        migrations.obstacles().await
    } else {
        Ok(Vec::new())
    };
    findings.push(schema_finding(comparison, settings.schema, obstacles));
    let mut checks = checks();
    if is_pending {
        let found = "tables may be missing";
        let advice = "run the pending migrations first";
        findings.push(Finding::unknown(PERMISSIONS, found, advice));
    } else {
        findings.push(sequence_finding(&migrations).await);
        // Commands that change keys connect as the user of migrations.
        let has_administrator = !direct.has_user_of(endpoint);
        checks.extend(checks_of_tables(has_api_keys, has_administrator));
    }
    for check in checks {
        let subject = check.subject;
        match within(settings.timeout, texts(client, &check.query)).await {
            Ok(problems) => findings.push((check.finding)(subject, &problems)),
            Err(error) if client.is_closed() || matches!(error, ConnectionError::NoResponse) => {
                let advice =
                    "check the load of PostgreSQL and the network, and run the command again";
                findings.push(Finding::error(subject, error.to_string(), advice));
                break;
            }
            Err(error) => findings.push(not_examined(subject, &error)),
        }
    }
    findings
}

/// Connects to the primary, or else to a standby, which can be examined as well.
async fn connect(
    endpoint: &PgEndpoint,
    settings: &PostgresSettings,
) -> Result<OpenConnection, ConnectionError> {
    let limit = settings.connect_timeout;
    let primary = endpoint.clone().of_primary(settings.transaction_pooling);
    match primary.connect(limit).await {
        Ok(connected) => Ok(connected),
        Err(_) => endpoint.connect(limit).await,
    }
}

fn checks() -> Vec<Check> {
    vec![
        Check::new("postgres.role", READ_ONLY_REASON, findings::role),
        Check::new("postgres.durability", NOT_DURABLE, findings::durability),
        Check::new("postgres.replication", ASYNCHRONOUS, findings::replication),
        Check::new("postgres.copy", UNFINISHED, findings::copy),
    ]
}

fn checks_of_tables(has_api_keys: bool, has_administrator: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut needed = FOR_PETS.to_vec();
    if has_api_keys {
        needed.extend(FOR_API_KEYS);
        let superfluous = superfluous_permissions(&FOR_REVOCATIONS, has_administrator);
        checks.push(Check::new(
            "postgres.revocations",
            superfluous,
            findings::revocations,
        ));
    }
    let missing = missing_permissions(&needed);
    checks.push(Check::new(PERMISSIONS, missing, findings::permissions));
    checks.push(Check::new(
        "postgres.row_security",
        ROW_SECURITY,
        findings::rows,
    ));
    checks
}

impl Check {
    fn new(
        subject: &'static str,
        query: impl Into<String>,
        finding: fn(&'static str, &[String]) -> Finding,
    ) -> Self {
        Self {
            subject,
            query: query.into(),
            finding,
        }
    }
}

/// Finds a pooler that assigns a server connection to each transaction.
async fn pooler_finding(
    client: &Client,
    endpoint: &PgEndpoint,
    settings: &PostgresSettings,
) -> Finding {
    match shares_servers(client, endpoint, settings).await {
        Ok(false) => Finding::ok(POOLER, "each connection has its own server process"),
        Ok(true) => Finding::error(
            POOLER,
            "a pooler assigns a server connection to each transaction: requests get 503",
            "set storage.postgres.transaction_pooling = true, or use the pooler in session mode",
        ),
        Err(error) => not_examined(POOLER, &error),
    }
}

/// A user of the instances may not read every sequence.
async fn sequence_finding(migrations: &Migrations) -> Finding {
    match migrations.sequence_problems().await {
        Ok(problems) => findings::sequence(SEQUENCE, &problems),
        Err(error) => not_examined(SEQUENCE, &error),
    }
}

fn not_examined(subject: &'static str, error: &dyn Display) -> Finding {
    Finding::unknown(
        subject,
        format!("not examined: {error}"),
        "resolve this error, and run the command again",
    )
}

/// Whether one server process executes transactions of two connections, or several those of one. The open transaction
/// of the other connection occupies a process.
async fn shares_servers(
    client: &Client,
    endpoint: &PgEndpoint,
    settings: &PostgresSettings,
) -> Result<bool, ConnectionError> {
    let other = endpoint.connect(settings.connect_timeout).await?;
    let compare = async {
        let before = texts(client, BACKEND).await?;
        other.client.batch_execute("BEGIN").await?;
        let is_shared = texts(&other.client, BACKEND).await? == before;
        Ok::<_, ConnectionError>(is_shared || texts(client, BACKEND).await? != before)
    };
    within(settings.timeout, compare).await
}

/// `obstacles`: why the next start cannot run the migrations.
fn schema_finding(
    comparison: Result<SchemaComparison, MigrationError>,
    mode: SchemaMode,
    obstacles: Result<Vec<String>, MigrationError>,
) -> Finding {
    let SchemaComparison { pending, newer, .. } = match comparison {
        Ok(comparison) => comparison,
        Err(error) => {
            let advice = match error {
                MigrationError::Unusable(_) => "do as described, or choose another database",
                _ => {
                    "check storage.postgres.migrate_url, and the permission SELECT ON __diesel_schema_migrations"
                }
            };
            return Finding::error(MIGRATIONS, error.to_string(), advice);
        }
    };
    if pending.is_empty() && newer.is_empty() {
        return Finding::ok(MIGRATIONS, "none is pending");
    }
    if pending.is_empty() {
        let newer = newer.join(", ");
        let found = format!("a newer program has expanded the schema: {newer}");
        let advice = "upgrade this program when the rolling restart allows it";
        return Finding::warning(MIGRATIONS, found, advice);
    }
    let found = format!("these migrations are pending: {}", pending.join(", "));
    let obstacles = match obstacles {
        Ok(obstacles) => obstacles,
        Err(error) => {
            let found = format!("{found}; whether the user can run them is unknown: {error}");
            return Finding::unknown(MIGRATIONS, found, "check storage.postgres.migrate_url");
        }
    };
    match mode {
        SchemaMode::Migrate if !obstacles.is_empty() => {
            let found = format!(
                "{found}; the user cannot run them: {}",
                obstacles.join("; ")
            );
            let advice =
                "grant that, or set storage.postgres.migrate_url, with the owner of the tables";
            Finding::error(MIGRATIONS, found, advice)
        }
        SchemaMode::Migrate => {
            let advice = "the next start runs them, or `animal-store migrate`, as the owner of the tables \
                          (storage.postgres.migrate_url)";
            Finding::warning(MIGRATIONS, found, advice)
        }
        SchemaMode::Check => {
            let advice = "run `animal-store migrate` as the owner of the tables (storage.postgres.migrate_url)";
            Finding::error(MIGRATIONS, found + "; the service does not start", advice)
        }
    }
}
