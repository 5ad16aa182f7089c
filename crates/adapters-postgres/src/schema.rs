//! The schema of the database, and its migrations.
//!
//! **Problem.** In a rolling restart, processes of several releases start at the same time on one database, and a
//! process may find a schema that is older or newer than its own.
//!
//! **Invariant.** One process at a time runs migrations, each at most once; no request is served before the schema can
//! be used. The recorded version of a migration says whether it only expanded the schema, which an older program
//! works with, or contracted it. A migration waits at most 200 ms for the lock of a table. See `migrations/README.md`.
//!
//! **Proof.** `tests/postgres/migrations.rs` (concurrent starts, newer and older programs, locks, failures).

mod engine;
mod migrations;

use std::time::Duration;

use animal_store_adapter_kit::Outage;
use animal_store_app::ports::UNFINISHED_COPY;
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep},
};

pub use self::migrations::Migrations;
use crate::{
    MigrationError, PgEndpoint, PostgresSettings, SchemaMode,
    checks::{UNFINISHED, sequence_behind},
};

/// Pause after an error that a retry is unlikely to resolve.
const LONG_PAUSE: Duration = Duration::from_secs(10);

/// Prepares the schema, with retries until it can be used; then `ready` is true. The log names the endpoint.
///
/// The first attempt decides about the start, except for attempts during which another process was changing the schema
/// or using the tables. If its error prevents the start, it is sent to `start_error` and not logged, and the
/// preparation ends. Otherwise `start_error` is dropped.
pub(crate) async fn prepare_schema(
    migrations: Migrations,
    settings: PostgresSettings,
    endpoint: PgEndpoint,
    ready: watch::Sender<bool>,
    start_error: oneshot::Sender<MigrationError>,
) {
    let mut start_error = Some(start_error);
    let mut outage = Outage::default();
    loop {
        let start = Instant::now();
        let attempt = match settings.schema {
            SchemaMode::Migrate => migrations.run().await.map(drop),
            SchemaMode::Check => migrations.check().await,
        };
        let Err(mut error) = attempt else { break };
        let is_of_another = matches!(
            error,
            MigrationError::Locked(_) | MigrationError::TablesInUse(_)
        );
        let ends_start = settings.required_at_start || matches!(error, MigrationError::Unusable(_));
        if !is_of_another {
            // Dropping the sender lets the start go on.
            let decided = start_error.take();
            if ends_start && let Some(start) = decided {
                match start.send(error) {
                    Ok(()) => return,
                    // The start has timed out.
                    Err(unsent) => error = unsent,
                }
            }
        }
        let starting = start_error
            .as_ref()
            .is_some_and(|start_error| !start_error.is_closed());
        outage.failed(error.to_string(), |reason| match error {
            MigrationError::Unavailable(_) => endpoint.log_unavailable(reason),
            _ if starting => tracing::warn!(address = %endpoint, reason, "the start waits for the schema"),
            _ => tracing::error!(address = %endpoint, reason, "the schema cannot be used: requests get 503"),
        });
        sleep(match error {
            MigrationError::Unavailable(_) | MigrationError::Locked(_) => {
                outage.next_pause(start.elapsed(), settings.connect_timeout)
            }
            _ => LONG_PAUSE,
        })
        .await;
    }
    tracing::info!(address = %endpoint, "pets are kept in PostgreSQL");
    ready.send_replace(true);
    if let Ok(true) = migrations.finds(&sequence_behind("pets")).await {
        tracing::warn!(
            address = %endpoint,
            "the sequence of ids is behind the greatest id, so creates get 503: run animal-store migrate"
        );
    }
    if let Ok(true) = migrations.finds(UNFINISHED).await {
        tracing::warn!(address = %endpoint, "{UNFINISHED_COPY}");
    }
}
