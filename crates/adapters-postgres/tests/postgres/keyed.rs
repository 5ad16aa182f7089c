//! Adds with an idempotency key, and what comes of them. A key is called as its animal is.

use std::{sync::Arc, time::Instant};

use animal_store_adapters_postgres::{PgPetRepository, PostgresSettings};
use animal_store_app::{
    ApiKeyId, IdempotencyKey,
    ports::{AddPet, AddPetError, AddedPet, PetRepository},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};

use crate::{
    batches::Bench,
    calls::{Outcome, PATIENCE, a_moment, of_add, pet},
};

/// What comes of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyed {
    /// It added the animal with this id.
    New(i64),
    /// An earlier one did.
    Again(i64),
    /// An earlier one is under way.
    Busy,
    Mismatch,
    Failed(Outcome),
}

pub(crate) use Keyed::{Again, Busy, Failed, Mismatch, New};

pub(crate) type Asking = BoxFuture<'static, Keyed>;

impl Keyed {
    /// The id of the animal.
    #[track_caller]
    pub(crate) fn id(self) -> i64 {
        match self {
            New(id) | Again(id) => id,
            other => panic!("{other:?}"),
        }
    }
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(ApiKeyId::new("shop"), text)
}

/// In the order in which the records of a batch are locked.
pub(crate) fn in_order(mut names: Vec<String>) -> Vec<String> {
    names.sort_by_key(|name| key(name));
    names
}

/// Asks for this animal with the key of that one.
pub(crate) async fn ask_as(repository: &PgPetRepository, text: &str, name: &str) -> Keyed {
    match repository.add(AddPet { pet: pet(name), idempotency_key: Some(key(text)) }).await {
        Ok(AddedPet { pet, replayed }) => {
            assert_eq!(pet.name().as_str(), name);
            if replayed { Again(pet.id().get()) } else { New(pet.id().get()) }
        }
        Err(AddPetError::IdempotencyConflict) => Busy,
        Err(AddPetError::IdempotencyMismatch) => Mismatch,
        Err(error) => Failed(of_add(&Err(error))),
    }
}

pub(crate) async fn ask(repository: &PgPetRepository, name: &str) -> Keyed {
    ask_as(repository, name, name).await
}

/// Asks again until there is an animal, as a client does.
pub(crate) async fn comes_to_be_added(repository: &PgPetRepository, name: &str) -> Keyed {
    let start = Instant::now();
    loop {
        match ask(repository, name).await {
            done @ (New(_) | Again(_)) => return done,
            other => assert!(start.elapsed() < PATIENCE, "{name}: {other:?}"),
        }
        a_moment().await;
    }
}

impl Bench {
    /// One whose connection for keys is open, too.
    pub(crate) async fn keyed(settings: PostgresSettings) -> Self {
        let bench = Self::with(settings).await;
        assert!(matches!(ask(&bench.store.repository, "Rex").await, New(_)));
        bench
    }

    /// Begins to ask. It is in the queue, or has been refused, when this returns.
    pub(crate) fn begin_asking(&self, name: &str) -> Asking {
        let (repository, name) = (Arc::clone(&self.store.repository), name.to_owned());
        let mut asking = async move { ask(&repository, &name).await }.boxed();
        match (&mut asking).now_or_never() {
            None => asking,
            Some(keyed) => std::future::ready(keyed).boxed(),
        }
    }

    /// Locks the table, and has the writer wait for it.
    pub(crate) async fn block_keyed(&self) -> Asking {
        self.other.lock().await;
        let first = self.begin_asking("first");
        self.other.wait_for_waiting(1).await;
        first
    }

    /// Asks for these in one batch.
    pub(crate) async fn ask_together(&self, names: &[impl AsRef<str>]) -> Vec<Keyed> {
        let first = self.block_keyed().await;
        let batch: Vec<_> = names.iter().map(|name| self.begin_asking(name.as_ref())).collect();
        self.other.unlock().await;
        first.await;
        join_all(batch).await
    }

    /// Whether there is a record of this key.
    pub(crate) async fn has_record(&self, name: &str) -> bool {
        self.other.count(&format!("idempotency_keys WHERE key_digest = sha256('{name}')")).await == 1
    }
}
