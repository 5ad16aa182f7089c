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

mod in_flight_keys;
mod keyed;
mod plain;

use std::{panic::resume_unwind, sync::Arc};

use animal_store_app::ports::{AddPet, AddPetError};
use tokio::{task::JoinHandle, try_join};

use self::{in_flight_keys::InFlightKeys, keyed::KeyedAdd, plain::PlainAdd};
use crate::{
    batching::{AddResult, BatchSession, Batcher},
    connection::{ConnectionSettings, Supervisor},
    error::NotConnected,
};

/// Adds pets, for all workers of the process.
#[derive(Clone)]
pub(crate) struct Creates {
    plain: Batcher<PlainAdd>,
    keyed: Batcher<KeyedAdd>,
    in_flight_keys: Arc<InFlightKeys>,
}

/// The connections of both kinds. Holding them does not keep the writers running.
pub(crate) struct CreateConnections {
    plain: Arc<Supervisor<BatchSession<PlainAdd>>>,
    keyed: Arc<Supervisor<BatchSession<KeyedAdd>>>,
}

impl Creates {
    /// Starts both writers on the current runtime. The task ends with both, or panics with the first that panics.
    pub(crate) fn start(connections: &ConnectionSettings) -> (Self, JoinHandle<()>) {
        let (plain, plain_writer) = Batcher::start(connections.clone());
        let (keyed, keyed_writer) = Batcher::start(connections.clone());
        let writers = tokio::spawn(async move {
            if let Err(error) = try_join!(plain_writer, keyed_writer)
                && let Ok(panic) = error.try_into_panic()
            {
                resume_unwind(panic);
            }
        });
        (Self { plain, keyed, in_flight_keys: Arc::default() }, writers)
    }

    /// Adds a pet. Returns after its commit.
    pub(crate) async fn add(&self, request: AddPet) -> AddResult {
        let Some(key) = request.idempotency_key else {
            return self.plain.add(PlainAdd { pet: request.pet }).await;
        };
        let in_flight = self.in_flight_keys.insert(key).ok_or(AddPetError::IdempotencyConflict)?;
        self.keyed.add(KeyedAdd { pet: request.pet, in_flight }).await
    }

    pub(crate) fn connections(&self) -> CreateConnections {
        CreateConnections { plain: self.plain.supervisor(), keyed: self.keyed.supervisor() }
    }
}

impl CreateConnections {
    pub(crate) async fn check(&self) -> Result<(), NotConnected> {
        self.plain.connection().await?;
        self.keyed.connection().await?;
        Ok(())
    }
}
