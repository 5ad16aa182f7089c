//! Calls of a storage and their outcomes. A call begins at once: a request is in the queue, or was refused, when the
//! method returns its future.

use std::{error::Error, sync::Arc, time::Duration};

use animal_store_app::{
    IdempotencyKey,
    ports::{AddPet, AddPetError, AddedPet, Cause, PetRepository, StoreFailure},
    test_support::{api_key_id, pet_named, wait_until},
};
use animal_store_domain::{Pet, PetId, PetStatus};
use futures_util::{FutureExt, TryFutureExt, future::BoxFuture};
use tokio::{join, time::timeout};

use crate::store::Store;

/// Longest wait for an event that has to happen.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Limit for every call: half of the timeouts of [`settings`](crate::settings::settings), and several times the others.
pub(crate) const PROMPT: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Unavailable,
    Timeout,
    /// Of adds only.
    Unknown,
}

pub(crate) use Outcome::{Success, Timeout, Unavailable, Unknown};

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

pub(crate) type AddResult = Result<Pet, AddPetError>;

fn failure(error: &StoreFailure) -> Outcome {
    match error {
        StoreFailure::OutcomeUnknown(_) => Unknown,
        StoreFailure::Unavailable(_) => Unavailable,
        StoreFailure::Timeout => Timeout,
        error => panic!("{error:?}"),
    }
}

pub(crate) fn read_outcome<T>(result: &Result<T, StoreFailure>) -> Outcome {
    result.as_ref().map_or_else(failure, |_| Success)
}

pub(crate) fn add_outcome<T>(result: &Result<T, AddPetError>) -> Outcome {
    match result {
        Ok(_) => Success,
        Err(AddPetError::Store(error)) => failure(error),
        Err(error) => panic!("{error:?}"),
    }
}

fn keyed(result: &Result<AddedPet, AddPetError>, name: &str) -> Keyed {
    match result {
        Ok(AddedPet { pet, replayed }) => {
            assert_eq!(pet.new_pet().name().as_str(), name);
            let id = pet.id().get();
            if *replayed { Replayed(id) } else { New(id) }
        }
        Err(AddPetError::IdempotencyConflict) => Conflict,
        Err(AddPetError::IdempotencyMismatch) => Mismatch,
        failed => Failed(add_outcome(failed)),
    }
}

/// The error with its sources.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> String {
    Cause::of(error).to_string()
}

/// Polls a future once.
pub(crate) fn begin<T: Send + 'static>(
    call: impl Future<Output = T> + Send + 'static,
) -> BoxFuture<'static, T> {
    let mut call = call.boxed();
    match (&mut call).now_or_never() {
        None => call,
        Some(result) => async { result }.boxed(),
    }
}

impl Store {
    fn begin_add(&self, request: AddPet) -> BoxFuture<'static, Result<AddedPet, AddPetError>> {
        let repository = Arc::clone(&self.repository);
        begin(async move { repository.add(request).await })
    }

    pub(crate) fn add(&self, name: &str) -> BoxFuture<'static, AddResult> {
        let added = self.begin_add(AddPet::new(pet_named(name)));
        added.map_ok(|added| added.pet).boxed()
    }

    /// Adds a pet whose name is its key.
    pub(crate) fn add_keyed(&self, name: &str) -> BoxFuture<'static, Keyed> {
        self.add_with_key(name, name)
    }

    pub(crate) fn add_with_key(&self, key: &str, name: &str) -> BoxFuture<'static, Keyed> {
        let added = self.begin_add(AddPet {
            pet: pet_named(name),
            idempotency_key: Some(IdempotencyKey::new(api_key_id("shop"), key)),
        });
        let name = name.to_owned();
        added.map(move |added| keyed(&added, &name)).boxed()
    }

    /// Retries until there is a pet, as a client does.
    pub(crate) async fn add_keyed_until_stored(&self, name: &str) -> Keyed {
        let mut last = Conflict;
        wait_until(name, async || {
            last = self.add_keyed(name).await;
            matches!(last, New(_) | Replayed(_))
        })
        .await;
        last
    }

    pub(crate) fn find(&self, id: i64) -> BoxFuture<'static, Result<Option<Pet>, StoreFailure>> {
        let repository = Arc::clone(&self.repository);
        let id = PetId::parse(id).expect("an id");
        begin(async move { repository.find(id).await })
    }

    /// Lists pets of this status behind this position; 0 is the beginning.
    pub(crate) fn list(
        &self,
        status: Option<PetStatus>,
        after: i64,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<Pet>, StoreFailure>> {
        let repository = Arc::clone(&self.repository);
        let after = PetId::parse(after).ok();
        begin(async move { repository.list(status, after, limit).await })
    }

    /// Adds a pet and finds it.
    pub(crate) async fn adds_and_finds(&self) -> Pet {
        let pet = self.add("Rex").await.expect("added");
        let found = self.find(pet.id().get()).await;
        assert_eq!(found.expect("found").as_ref(), Some(&pet));
        pet
    }

    /// Lists, finds and adds at the same time.
    pub(crate) async fn list_find_add(&self) -> [Outcome; 3] {
        let calls = async { join!(self.list(None, 0, 10), self.find(1), self.add("Rex")) };
        let (list, find, add) = timeout(PROMPT, calls)
            .await
            .expect("no call waits for another timeout");
        [read_outcome(&list), read_outcome(&find), add_outcome(&add)]
    }

    /// Waits until list, find and add have this outcome.
    pub(crate) async fn wait_for(&self, expected: Outcome) {
        let what = format!("list, find and add: {expected:?}");
        let is_expected = async || self.list_find_add().await == [expected; 3];
        wait_until(&what, is_expected).await;
    }

    /// The reason if the storage is not ready.
    pub(crate) async fn not_ready(&self) -> Option<String> {
        let checked = self.storage.readiness().check().await;
        checked.err().map(|not_ready| not_ready.to_string())
    }

    pub(crate) async fn wait_until_ready(&self) {
        let is_ready = async || self.not_ready().await.is_none();
        wait_until("the storage is ready", is_ready).await;
    }

    /// Waits until list, find and add succeed, and the storage is ready.
    pub(crate) async fn wait_until_it_works(&self) {
        self.wait_for(Success).await;
        self.wait_until_ready().await;
    }
}
