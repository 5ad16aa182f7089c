//! Adding pets, with and without an idempotency key.
//!
//! **Problem.** A client that got no response retries. The retry must not add a second pet, even if it reaches another
//! process, and creates without a key must not wait for creates with a key.
//!
//! **Invariant.** At most one `add` per idempotency key inserts a pet, and its record and its pet are stored by one
//! statement. While a key is in flight, from an `add` until its outcome is known, a second `add` waits within its
//! timeout: in this process until the key is free, and for another process by retries, because PostgreSQL has locked
//! the record. Each kind of create has its own queue and its own connection.
//!
//! **Proof.** In `tests/postgres`: `outcome.rs` (lost connections), `keyed_busy.rs` (keys in flight),
//! `keyed_locks.rs` (locked records, several processes), `keyed_records.rs`, `add_plans.rs` (EXPLAIN). The unit test.

mod create;
mod in_flight_keys;
mod session;

use std::{sync::Arc, time::Duration};

use animal_store_adapter_kit::{backoff, queue::Sender};
use animal_store_app::{
    IdempotencyKey,
    ports::{AddPet, AddPetError, AddedPet, StoreFailure},
};
use animal_store_domain::{NewPet, Pet};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout_at},
};

use self::{
    create::{Create, Response},
    in_flight_keys::InFlightKeys,
    session::CreateSession,
};
use crate::{
    batching::{batching, watch_over},
    connection::ConnectionSettings,
    purpose::Purpose,
};

/// Pauses between the retries of a create whose record another process has locked.
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(200);

/// Adds pets, for all workers of the process.
pub(crate) struct Creates {
    plain: Sender<Create>,
    keyed: Sender<Create>,
    in_flight_keys: Arc<InFlightKeys>,
    timeout: Duration,
}

impl Creates {
    /// Starts both kinds on the current runtime. The task ends with the dispatchers, or when any task of the storage
    /// panics.
    pub(crate) fn start(settings: &ConnectionSettings) -> (Self, JoinHandle<()>) {
        let (plain, mut writers) = batching::<CreateSession>(Purpose::Creates, settings);
        let (keyed, keyed_writers) = batching::<CreateSession>(Purpose::KeyedCreates, settings);
        writers.extend(keyed_writers);
        let creates = Self {
            plain,
            keyed,
            in_flight_keys: Arc::default(),
            timeout: settings.postgres.timeout,
        };
        (creates, watch_over(writers, settings))
    }

    /// Adds a pet. Returns after its commit.
    pub(crate) async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        let pet = Arc::new(request.pet);
        let response = match request.idempotency_key {
            None => self.add_plain(&pet).await,
            Some(key) => self.add_keyed(&pet, key).await,
        };
        let response = response?;
        let id = match response {
            Response::Added(id) | Response::Replayed(id) => id,
            Response::Mismatch => return Err(AddPetError::IdempotencyMismatch),
            Response::Locked => return Err(AddPetError::IdempotencyConflict),
            Response::TableLocked => return Err(StoreFailure::Timeout.into()),
        };
        Ok(AddedPet {
            // The request is dropped before its response is sent, so this is the only reference.
            pet: Pet::new(id, Arc::unwrap_or_clone(pet)),
            replayed: matches!(response, Response::Replayed(_)),
        })
    }

    async fn add_plain(&self, pet: &Arc<NewPet>) -> Result<Response, AddPetError> {
        let create = Create {
            pet: Arc::clone(pet),
            in_flight: None,
            is_retry: false,
        };
        Ok(self.plain.send(create, self.timeout).await?)
    }

    /// Retries within the timeout while another process has locked the record of the key, or a table.
    async fn add_keyed(
        &self,
        pet: &Arc<NewPet>,
        key: IdempotencyKey,
    ) -> Result<Response, AddPetError> {
        let deadline = Instant::now() + self.timeout;
        let conflict = |_| AddPetError::IdempotencyConflict;
        let mut pauses = backoff(MIN_PAUSE, MAX_PAUSE);
        let mut is_retry = false;
        loop {
            let free = self.in_flight_keys.acquire(key.clone());
            let in_flight = timeout_at(deadline, free).await.map_err(conflict)?;
            let create = Create {
                pet: Arc::clone(pet),
                in_flight: Some(in_flight),
                is_retry,
            };
            let response = self.keyed.send(create, deadline - Instant::now()).await?;
            if !matches!(response, Response::Locked | Response::TableLocked) {
                return Ok(response);
            }
            let pause = pauses.next().unwrap_or(MAX_PAUSE);
            if timeout_at(deadline, sleep(pause)).await.is_err() {
                return Ok(response);
            }
            is_retry = true;
        }
    }

    /// Whether both queues are served: connected, or in the first attempt.
    pub(crate) fn is_connected(&self) -> bool {
        self.plain.is_served() && self.keyed.is_served()
    }
}

#[cfg(test)]
mod tests {
    use animal_store_adapter_kit::{
        metrics::QueueMetrics,
        queue::{Taker, queue},
    };
    use animal_store_app::{
        IdempotencyKey,
        test_support::{api_key_id, new_pet},
    };
    use futures_util::{FutureExt, future::join_all};
    use prometheus_client::registry::Registry;

    use super::{create::MAX_BATCH, *};

    /// Responds to a batch that all its records are locked. Returns the size of the batch.
    fn refuse(taker: &Taker<Create>) -> usize {
        let batch = taker.take(MAX_BATCH).into_iter();
        batch
            .map(|pending| pending.respond(taker.metrics(), |_| Ok(Response::Locked)))
            .count()
    }

    /// Creates whose timeout is a second, and the batches of those with a key.
    fn creates() -> (Creates, Taker<Create>) {
        let [metrics] = QueueMetrics::register(&mut Registry::default(), ["create"]);
        let outcome_timeout = Some(Duration::from_secs(8));
        let [(plain, _), (keyed, takers)] =
            [(); 2].map(|()| queue(10, outcome_timeout, metrics.clone()));
        let creates = Creates {
            plain,
            keyed,
            in_flight_keys: Arc::default(),
            timeout: Duration::from_secs(1),
        };
        (creates, takers.taker())
    }

    async fn add(creates: &Creates, key: &str) -> Result<AddedPet, AddPetError> {
        let idempotency_key = Some(IdempotencyKey::new(api_key_id("key"), key));
        let pet = new_pet();
        let request = AddPet {
            pet,
            idempotency_key,
        };
        creates.add(request).await
    }

    /// With others in its batch, each smaller batch that has the retry would wait for the lock again.
    #[tokio::test(start_paused = true)]
    async fn the_retry_of_a_create_whose_record_is_locked_is_alone_in_its_batch() {
        let (creates, taker) = creates();
        let mut locked = join_all(["one", "two"].map(|key| add(&creates, key)));
        assert!((&mut locked).now_or_never().is_none());
        assert_eq!(refuse(&taker), 2);
        timeout_at(Instant::now() + MAX_PAUSE, &mut locked)
            .await
            .expect_err("the retries wait");
        let mut other = Box::pin(add(&creates, "other"));
        assert!((&mut other).now_or_never().is_none());
        assert_eq!([(); 4].map(|()| refuse(&taker)), [1, 1, 1, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_create_whose_key_is_in_flight_for_its_timeout_conflicts_and_is_not_sent() {
        let (creates, taker) = creates();
        let mut first = Box::pin(add(&creates, "one"));
        assert!((&mut first).now_or_never().is_none());
        let sent = taker.take(MAX_BATCH);
        let again = add(&creates, "one").await;
        assert!(matches!(again, Err(AddPetError::IdempotencyConflict)));
        assert_eq!(refuse(&taker), 0);
        assert!((&mut first).now_or_never().is_none());
        assert_eq!(sent.len(), 1);
    }
}
