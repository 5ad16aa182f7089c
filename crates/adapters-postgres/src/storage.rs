use std::{sync::Arc, time::Duration};

use animal_store_app::ports::Readiness;
use thiserror::Error;
use tokio::{
    sync::{oneshot, watch},
    task::{AbortHandle, JoinHandle},
    time::{sleep, timeout},
};

use crate::{
    MigrationError, Migrations, PgEndpoint, PgPetRepository, PgReadiness, PostgresSettings, SchemaMode,
    creates::Creates,
    link::{self, Opener},
    outage,
    sweep::Sweep,
};

/// How long the start waits for the schema, where the database does not have to be there.
const START_PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks at a schema that only somebody else can mend.
const FINAL_PAUSE: Duration = Duration::from_secs(10);

/// What the process has one of: the schema, the connections that write, and the sweep of idempotency keys.
pub struct PgStorage {
    opener: Opener,
    settings: PostgresSettings,
    creates: Creates,
    readiness: Arc<PgReadiness>,
    tasks: [AbortHandle; 2],
}

/// The end of the writers, which comes when the last repository is gone and every create is answered.
pub struct WriterEnd(JoinHandle<()>);

/// Why there is no storage.
#[derive(Debug, Error)]
#[error("the storage cannot be used")]
pub struct StartError(#[source] MigrationError);

impl PgStorage {
    /// Begins to use a database, on the current runtime, which has to have several threads. `direct` leads to the same
    /// database for migrations: past a pooler, where there is one.
    ///
    /// # Errors
    /// Where the schema is not as it has to be and no other attempt can change that, or the database has to be there
    /// and is not.
    pub async fn start(
        endpoint: PgEndpoint,
        direct: PgEndpoint,
        settings: PostgresSettings,
    ) -> Result<(Self, WriterEnd), StartError> {
        let migrations = Migrations::new(direct, settings.connect_timeout);
        let (schema_sender, schema) = watch::channel(false);
        let (first_sender, first) = oneshot::channel();
        let keeper = Keeper { migrations, mode: settings.schema, endpoint: endpoint.clone() };
        let schema_keeper = tokio::spawn(keeper.keep(schema_sender, first_sender)).abort_handle();
        match first_attempt(first, settings.required_at_start).await {
            Some(error) if error.is_final() || settings.required_at_start => {
                schema_keeper.abort();
                return Err(StartError(error));
            }
            _ => {}
        }

        let opener = Opener {
            endpoint,
            patience: settings.connect_timeout,
            outages: Arc::default(),
            set_up: (!settings.transaction_pooling).then(|| settings.statements("SET")),
            schema,
        };
        let (creates, writing) = Creates::start(&opener, &settings);
        let readiness = Arc::new(PgReadiness::new(opener.clone(), creates.links(), settings.timeout));
        let sweep = tokio::spawn(Sweep::new(opener.clone(), &settings).run()).abort_handle();
        Ok((Self { opener, settings, creates, readiness, tasks: [schema_keeper, sweep] }, WriterEnd(writing)))
    }

    /// The animals, for one worker.
    pub fn repository(&self) -> PgPetRepository {
        PgPetRepository::new(self.opener.clone(), self.settings.clone(), self.creates.clone())
    }

    /// Whether animals can be read and added now.
    pub fn readiness(&self) -> Arc<dyn Readiness> {
        self.readiness.clone()
    }
}

impl WriterEnd {
    /// Waits for it, once.
    pub async fn wait(&mut self) {
        // One that panicked has ended, too.
        let _ = (&mut self.0).await;
    }
}

impl Drop for PgStorage {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// What is wrong with the schema, if that is known in time.
async fn first_attempt(first: oneshot::Receiver<MigrationError>, required: bool) -> Option<MigrationError> {
    let patience = if required { Duration::MAX } else { START_PATIENCE };
    timeout(patience, first).await.ok()?.ok()
}

/// Looks after the schema until it is as it has to be.
struct Keeper {
    migrations: Migrations,
    mode: SchemaMode,
    endpoint: PgEndpoint,
}

impl Keeper {
    /// Says what the first attempt failed at, unless that was another process that is at it; says nothing where it did
    /// not fail.
    async fn keep(self, schema: watch::Sender<bool>, first: oneshot::Sender<MigrationError>) {
        let mut first = Some(first);
        let mut pauses = link::pauses();
        let mut last_complaint = String::new();
        while let Err(error) = self.attempt().await {
            let reason = error.to_string();
            if reason != last_complaint {
                complain(&self.endpoint, &error);
                last_complaint = reason;
            }
            let pause = if error.may_pass() { pauses.next().unwrap_or(link::MAX_PAUSE) } else { FINAL_PAUSE };
            if !matches!(error, MigrationError::Locked(_))
                && let Some(first) = first.take()
            {
                // Whoever waited may have gone.
                let _ = first.send(error);
            }
            sleep(pause).await;
        }
        tracing::info!(address = %self.endpoint, "animals are kept in PostgreSQL");
        schema.send_replace(true);
    }

    async fn attempt(&self) -> Result<(), MigrationError> {
        match self.mode {
            SchemaMode::Migrate => self.migrations.run().await.map(drop),
            SchemaMode::Check => {
                let pending = self.migrations.pending().await?;
                if pending.is_empty() { Ok(()) } else { Err(MigrationError::Pending(pending)) }
            }
        }
    }
}

fn complain(endpoint: &PgEndpoint, error: &MigrationError) {
    let reason = error.to_string();
    if let MigrationError::Unavailable(_) = error {
        outage::complain(endpoint, &reason);
    } else {
        tracing::error!(address = %endpoint, reason, "the schema cannot be used: requests are answered 503");
    }
}
