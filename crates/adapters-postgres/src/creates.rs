//! Adding pets, with and without an idempotency key.
//!
//! **Problem.** A client that got no response retries. The retry must not add a second pet, even if it reaches another
//! process, and creates without a key must not wait for creates with a key.
//!
//! **Invariant.** At most one `add` per idempotency key inserts a pet, and its record and its pet are stored by one
//! statement. In a process, a key is in flight from its `add` until the outcome is known; a second `add` fails with a
//! conflict. Across processes, PostgreSQL makes the second one wait for the record of the first. Each kind of create
//! has its own queue and connection.
//!
//! **Proof.** `tests/postgres/keyed_outcome.rs` (lost connections), `keyed_storm.rs` (two processes, failing links),
//! `keyed_busy.rs` (keys in flight), `keyed_locks.rs` (locked records), `add_plans.rs` (EXPLAIN).

mod add_request;
mod batch;
mod in_flight_keys;
mod keyed;
mod plain;
mod session;

use std::{panic::resume_unwind, sync::Arc};

use animal_store_app::ports::{AddPet, AddPetError};
use futures_util::future::try_join_all;
use tokio::task::JoinHandle;

use self::{
    add_request::{AddRequest, AddResult},
    in_flight_keys::InFlightKeys,
    keyed::KeyedAdd,
    plain::PlainAdd,
    session::AddSession,
};
use crate::{
    batching::Batcher,
    connection::{ConnectionSettings, Supervisors},
    error::NotConnected,
};

/// Adds pets, for all workers of the process.
pub(crate) struct Creates {
    plain: Batcher<PlainAdd>,
    keyed: Batcher<KeyedAdd>,
    in_flight_keys: Arc<InFlightKeys>,
}

/// The connections of both kinds. Holding them does not keep the dispatchers running.
pub(crate) struct CreateConnections {
    plain: Arc<Supervisors<AddSession<PlainAdd>>>,
    keyed: Arc<Supervisors<AddSession<KeyedAdd>>>,
}

impl Creates {
    /// Starts both kinds on the current runtime, with one connection each: a second one makes the batches smaller. The
    /// task ends with both dispatchers, or panics with the first that panics.
    pub(crate) fn start(settings: &ConnectionSettings) -> (Self, CreateConnections, JoinHandle<()>) {
        let metrics = &settings.metrics;
        let connection_metrics = &metrics.create_connections;
        let connections = CreateConnections {
            plain: Arc::new(Supervisors::new(settings, PlainAdd::PURPOSE, connection_metrics, 1)),
            keyed: Arc::new(Supervisors::new(settings, KeyedAdd::PURPOSE, connection_metrics, 1)),
        };
        let capacity = settings.postgres.max_waiting_creates;
        let (plain, plain_writer) = Batcher::start(settings, &connections.plain, capacity, &metrics.creates);
        let (keyed, keyed_writer) = Batcher::start(settings, &connections.keyed, capacity, &metrics.keyed_creates);
        let writers = tokio::spawn(async move {
            if let Err(error) = try_join_all(plain_writer.into_iter().chain(keyed_writer)).await
                && let Ok(panic) = error.try_into_panic()
            {
                resume_unwind(panic);
            }
        });
        (Self { plain, keyed, in_flight_keys: Arc::default() }, connections, writers)
    }

    /// Adds a pet. Returns after its commit.
    pub(crate) async fn add(&self, AddPet { pet, idempotency_key }: AddPet) -> AddResult {
        let added = match idempotency_key {
            None => self.plain.send(PlainAdd { pet }).await,
            Some(key) => {
                let in_flight = self.in_flight_keys.insert(key).ok_or(AddPetError::IdempotencyConflict)?;
                self.keyed.send(KeyedAdd { pet, in_flight }).await
            }
        };
        added.unwrap_or_else(|| Err(AddPetError::Store(StoreFailure::OutcomeUnknown("the writer has stopped".into()))))
    }
}

impl CreateConnections {
    pub(crate) async fn check(&self) -> Result<(), NotConnected> {
        self.plain.connection().await?;
        self.keyed.connection().await?;
        Ok(())
    }
}
