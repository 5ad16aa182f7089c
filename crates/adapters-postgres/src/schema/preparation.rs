use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{oneshot, watch},
    time::sleep,
};

use super::{migration_error::MigrationError, migrations::Migrations};
use crate::{PgEndpoint, SchemaMode, connection::Outage};

/// Pause after an error that a retry is unlikely to resolve.
const LONG_PAUSE: Duration = Duration::from_secs(10);

/// Prepares the schema, with retries until it can be used; then `ready` is true. The log names the endpoint.
///
/// The error of the first attempt is sent to `first_error`, unless another process was changing the schema. Nothing is
/// sent there if there was no error.
pub(crate) async fn prepare_schema(
    migrations: Migrations,
    mode: SchemaMode,
    endpoint: PgEndpoint,
    ready: watch::Sender<bool>,
    first_error: oneshot::Sender<MigrationError>,
) {
    let mut first_error = Some(first_error);
    let mut outage = Outage::new(&Arc::default());
    while let Err(error) = attempt(&migrations, mode).await {
        outage.failed(error.to_string(), |reason| {
            if let MigrationError::Unavailable(_) = error {
                endpoint.log_unavailable(reason);
            } else {
                tracing::error!(address = %endpoint, reason, "the schema cannot be used: requests get 503");
            }
        });
        let pause = if error.is_temporary() { outage.next_pause() } else { LONG_PAUSE };
        if !matches!(error, MigrationError::Locked(_))
            && let Some(first_error) = first_error.take()
        {
            // The start may have timed out.
            let _ = first_error.send(error);
        }
        sleep(pause).await;
    }
    tracing::info!(address = %endpoint, "pets are kept in PostgreSQL");
    ready.send_replace(true);
}

async fn attempt(migrations: &Migrations, mode: SchemaMode) -> Result<(), MigrationError> {
    match mode {
        SchemaMode::Migrate => migrations.run().await.map(drop),
        SchemaMode::Check => {
            let pending = migrations.pending().await?;
            if pending.is_empty() { Ok(()) } else { Err(MigrationError::Pending(pending)) }
        }
    }
}
