//! Adds with an idempotency key, and their results. The key of a pet is its name.

use std::{cell::Cell, sync::Arc};

use animal_store_adapters_postgres::{PgPetRepository, PostgresSettings};
use animal_store_app::{
    IdempotencyKey,
    ports::{AddPet, AddPetError, AddedPet, PetRepository},
    test_support::{api_key_id, pet_named},
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};

use crate::{
    fixture::{Fixture, poll_once},
    outcomes::{Outcome, add_outcome, wait_until},
    store::{in_both_modes, settings},
};

/// Result of an add with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyed {
    /// It added the pet with this id.
    New(i64),
    /// An earlier add added the pet with this id.
    Replayed(i64),
    /// An earlier add is in flight.
    Conflict,
    Mismatch,
    Failed(Outcome),
}

pub(crate) use Keyed::{Conflict, Failed, Mismatch, New, Replayed};

impl Keyed {
    /// The id of the pet.
    #[track_caller]
    pub(crate) fn id(self) -> i64 {
        match self {
            New(id) | Replayed(id) => id,
            result => panic!("{result:?}"),
        }
    }
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(api_key_id("shop"), text)
}

/// Adds a pet with the key of another one.
pub(crate) async fn add_with_key(repository: &PgPetRepository, text: &str, name: &str) -> Keyed {
    match repository
        .add(AddPet {
            pet: pet_named(name),
            idempotency_key: Some(key(text)),
        })
        .await
    {
        Ok(AddedPet { pet, replayed }) => {
            assert_eq!(pet.new_pet().name().as_str(), name);
            if replayed {
                Replayed(pet.id().get())
            } else {
                New(pet.id().get())
            }
        }
        Err(AddPetError::IdempotencyConflict) => Conflict,
        Err(AddPetError::IdempotencyMismatch) => Mismatch,
        Err(error) => Failed(add_outcome(&Err(error))),
    }
}

pub(crate) async fn add_keyed(repository: &PgPetRepository, name: &str) -> Keyed {
    add_with_key(repository, name, name).await
}

/// Retries until there is a pet, as a client does.
pub(crate) async fn add_keyed_until_stored(repository: &PgPetRepository, name: &str) -> Keyed {
    let last = Cell::new(Conflict);
    let is_stored = async || {
        last.set(add_keyed(repository, name).await);
        matches!(last.get(), New(_) | Replayed(_))
    };
    wait_until(name, is_stored).await;
    last.get()
}

impl Fixture {
    /// A storage with an open connection for keys.
    pub(crate) async fn keyed(settings: PostgresSettings) -> Self {
        let fixture = Self::with(settings).await;
        assert!(matches!(
            add_keyed(&fixture.store.repository, "Rex").await,
            New(_)
        ));
        fixture
    }

    /// Runs a test without and with transaction pooling, at the same time.
    pub(crate) async fn keyed_in_both_modes(test: impl AsyncFn(Self)) {
        let start = async |settings| test(Self::keyed(settings).await).await;
        in_both_modes(&settings(), start).await;
    }

    /// Starts to add a pet with its key. It is in the queue, or was refused, when this returns.
    pub(crate) fn begin_keyed(&self, name: &str) -> BoxFuture<'static, Keyed> {
        let repository = Arc::clone(&self.store.repository);
        let name = name.to_owned();
        poll_once(async move { add_keyed(&repository, &name).await }.boxed())
    }

    /// Locks the table, and makes the writer wait for it.
    pub(crate) async fn block_keyed(&self) -> BoxFuture<'static, Keyed> {
        self.observer.lock().await;
        let first = self.begin_keyed("first");
        self.observer.wait_for_table_locks(1).await;
        first
    }

    /// Adds these pets with their keys in one batch.
    pub(crate) async fn add_keyed_together(&self, names: &[impl AsRef<str>]) -> Vec<Keyed> {
        let first = self.block_keyed().await;
        let batch: Vec<_> = names
            .iter()
            .map(|name| self.begin_keyed(name.as_ref()))
            .collect();
        self.observer.unlock().await;
        first.await;
        join_all(batch).await
    }
}
