use std::time::Duration;

use animal_store_app::ports::{Cause, NotReady, Readiness};
use async_trait::async_trait;
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::{
    creates::CreateLinks,
    error::{ConnectionError, describe},
    link::{LATE, Link, Opener, READ_ONLY, Session},
};

/// Reads the table, and asks whether it can be written. One statement without a name: it passes any pooler.
const QUESTION: &str = "SELECT current_setting('transaction_read_only'), EXISTS (SELECT FROM pets)";

/// Whether animals can be read and added now.
pub struct PgReadiness {
    creates: CreateLinks,
    link: Link<Probe>,
    patience: Duration,
}

struct Probe(Client);

impl Session for Probe {
    const PURPOSE: &'static str = "readiness";

    type Settings = ();

    async fn begin(client: Client, (): &()) -> Result<Self, ConnectionError> {
        Ok(Self(client))
    }
}

impl PgReadiness {
    pub(crate) fn new(opener: Opener, creates: CreateLinks, patience: Duration) -> Self {
        Self { link: Link::new(opener, ()), creates, patience }
    }

    async fn ask(&self) -> Result<(), Cause> {
        self.creates.connected().await?;
        let open = self.link.session().await?;
        let Ok(answer) = timeout(self.patience, open.session.0.query_typed_one(QUESTION, &[])).await else {
            open.give_up(LATE);
            return Err("PostgreSQL did not answer in time".into());
        };
        let read_only: String = answer.and_then(|row| row.try_get(0)).map_err(|error| describe(&error))?;
        if read_only == "on" {
            open.give_up(READ_ONLY);
            return Err("PostgreSQL is read-only".into());
        }
        Ok(())
    }
}

#[async_trait]
impl Readiness for PgReadiness {
    async fn check(&self) -> Result<(), NotReady> {
        self.ask().await.map_err(NotReady)
    }
}
