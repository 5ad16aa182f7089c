//! The part of `animal-store doctor` about PostgreSQL.
//!
//! **Problem.** A setting of the server, a missing index or a missing permission is found by the first request that
//! needs it, or by the crash that loses a pet.
//!
//! **Invariant.** The diagnosis changes nothing: its transactions are read-only, and permissions and plans are queried,
//! not tried. It examines the statements of the adapter themselves. Each wait has a timeout. A subject that cannot be
//! examined hides no other, unless the connection is lost.
//!
//! **Proof.** `tests/postgres/diagnosis.rs` (each finding, nothing changed); `crates/server/tests/process/doctor.rs`
//! (an unavailable PostgreSQL, secrets).

mod clock;
mod connections;
mod inspection;
mod migrations;
mod permissions;
mod plans;
mod server;

use animal_store_app::Finding;
use futures_util::future::BoxFuture;

use self::inspection::{Inspected, Inspection};
use crate::{Migrations, PgEndpoint, PostgresSettings};

/// Examines a database for an instance with this number of workers. `direct` leads to the same database for
/// migrations. The number of statements is fixed, and each ends within the timeouts of the settings.
pub async fn diagnose(
    endpoint: &PgEndpoint,
    direct: &PgEndpoint,
    settings: &PostgresSettings,
    workers: usize,
) -> Vec<Finding> {
    let inspection = match Inspection::open(endpoint, settings).await {
        Ok(inspection) => inspection,
        Err(error) if error.is_about_the_encoding() => {
            let advice = "create a database WITH ENCODING 'UTF8', and restore the data into it";
            return vec![Finding::error("postgres.encoding", error.to_string(), advice)];
        }
        Err(error) => {
            let advice = "check storage.postgres.url, and whether PostgreSQL runs and accepts the user";
            return vec![Finding::error("postgres.connection", error.to_string(), advice)];
        }
    };
    let migrations = Migrations::new(direct.clone(), settings.connect_timeout);
    let (migrations, pending) = migrations::inspect(&migrations, settings.schema).await;
    let mut findings = vec![
        Finding::ok("postgres.connection", endpoint.login()),
        // A connection to a database with another encoding fails.
        Finding::ok("postgres.encoding", "UTF8"),
        migrations,
    ];
    let steps: [(&'static str, BoxFuture<'_, Inspected>); 5] = [
        ("postgres.version", Box::pin(server::inspect(&inspection))),
        ("postgres.connections", Box::pin(connections::inspect(&inspection, settings, workers))),
        ("postgres.clock", Box::pin(clock::inspect(&inspection))),
        ("postgres.permissions", Box::pin(permissions::inspect(&inspection, pending))),
        ("postgres.plans", Box::pin(plans::inspect(&inspection, settings))),
    ];
    for (subject, step) in steps {
        match step.await {
            Ok(found) => findings.extend(found),
            Err(error) if inspection.is_lost(&error) => {
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
