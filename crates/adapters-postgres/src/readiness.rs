use animal_store_app::ports::{Cause, NotReady, Readiness};
use async_trait::async_trait;
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::{
    connection::{ConnectionSettings, NO_RESPONSE, READ_ONLY, Supervisor},
    creates::CreateConnections,
};

/// Reads the table, and checks that it can be written. The statement is not prepared, so it works through any pooler.
const PROBE: &str = "SELECT current_setting('transaction_read_only'), EXISTS (SELECT FROM pets)";

/// Probe of PostgreSQL: ready if pets can be read and added.
pub(crate) struct PgReadiness {
    settings: ConnectionSettings,
    supervisor: Supervisor<Client>,
    creates: CreateConnections,
}

impl PgReadiness {
    pub(crate) fn new(settings: ConnectionSettings, creates: CreateConnections) -> Self {
        let metrics = &settings.metrics.readiness_connections;
        Self { supervisor: Supervisor::new(settings.clone(), "readiness", metrics), settings, creates }
    }

    async fn probe(&self) -> Result<(), Cause> {
        self.creates.check().await?;
        let connection = self.supervisor.connection().await?;
        let response = connection.session.query_typed_one(PROBE, &[]);
        let Ok(response) = timeout(self.settings.postgres.timeout, response).await else {
            connection.mark_broken(NO_RESPONSE);
            return Err("PostgreSQL did not respond in time".into());
        };
        let read_only = response.and_then(|row| row.try_get::<_, String>(0));
        let read_only = read_only.map_err(|error| self.settings.endpoint.locate(error).to_string())?;
        if read_only == "on" {
            connection.mark_broken(READ_ONLY);
            return Err("PostgreSQL is read-only".into());
        }
        Ok(())
    }
}

#[async_trait]
impl Readiness for PgReadiness {
    async fn check(&self) -> Result<(), NotReady> {
        self.probe().await.map_err(NotReady)
    }
}
