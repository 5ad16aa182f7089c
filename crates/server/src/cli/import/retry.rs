//! The retries of an import.
//!
//! A create that the store did not confirm is sent again: its idempotency key makes that safe. A store that has
//! accepted a pet of this import is expected back, after a restart or on a slow disk. One that has accepted none may be
//! configured wrongly, so it gets less time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use animal_store_adapter_kit::Outage;
use animal_store_app::ports::{AddPetError, AddedPet, StoreFailure};
use tokio::time::{Instant, sleep};

/// How long a create is repeated, from its first failure.
const LIMIT: Duration = Duration::from_mins(1);

/// The same until the first create of the import has succeeded.
const FIRST_LIMIT: Duration = Duration::from_secs(10);

/// The retries of one create. Clones are for other creates of the import.
#[derive(Clone, Default)]
pub(super) struct Retry {
    has_succeeded: Arc<AtomicBool>,
    outage: Outage,
}

impl Retry {
    /// Repeats a create until it succeeds. A pet that an attempt with an unknown outcome may have added counts as added.
    ///
    /// # Errors
    /// An error that a retry cannot change, or the last one after the limit.
    pub(super) async fn run<F>(mut self, create: impl Fn() -> F) -> Result<AddedPet, AddPetError>
    where
        F: Future<Output = Result<AddedPet, AddPetError>>,
    {
        let mut first_failure = None;
        let mut may_be_added = false;
        loop {
            let start = Instant::now();
            let error = match create().await {
                Ok(mut added) => {
                    added.replayed &= !may_be_added;
                    self.has_succeeded.store(true, Ordering::Relaxed);
                    if self.outage.succeeded() {
                        tracing::info!("the import continues");
                    }
                    return Ok(added);
                }
                Err(error) => error,
            };
            let failing_for = first_failure.get_or_insert_with(Instant::now).elapsed();
            if !is_temporary(&error) || failing_for >= self.limit() {
                return Err(error);
            }
            may_be_added |= matches!(error, AddPetError::Store(StoreFailure::OutcomeUnknown(_)));
            self.outage.failed(error.to_string(), |reason| {
                tracing::warn!(reason, "the import waits for the store");
            });
            sleep(self.outage.next_pause(start.elapsed(), Duration::ZERO)).await;
        }
    }

    fn limit(&self) -> Duration {
        if self.has_succeeded.load(Ordering::Relaxed) {
            LIMIT
        } else {
            FIRST_LIMIT
        }
    }
}

/// Whether the same create can succeed later.
fn is_temporary(error: &AddPetError) -> bool {
    !matches!(
        error,
        AddPetError::Store(StoreFailure::Corrupt(_)) | AddPetError::IdempotencyMismatch
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use animal_store_domain::{Pet, PetId};
    use animal_store_pet_json::{self as pet_json, Subject};

    use super::*;

    type Attempt = Result<AddedPet, AddPetError>;

    fn added(replayed: bool) -> AddedPet {
        let new_pet =
            pet_json::from_slice(br#"{"name":"Rex","categoryId":1}"#, Subject::Line).unwrap();
        let pet = Pet::new(PetId::parse(1).unwrap(), new_pet);
        AddedPet { pet, replayed }
    }

    fn failure(failure: StoreFailure) -> Attempt {
        Err(failure.into())
    }

    fn temporary() -> Vec<Attempt> {
        vec![
            failure(StoreFailure::Unavailable("refused".into())),
            failure(StoreFailure::Overloaded),
            failure(StoreFailure::Timeout),
            Err(AddPetError::IdempotencyConflict),
        ]
    }

    /// Answers the attempts in turn.
    async fn run(retry: &Retry, attempts: Vec<Attempt>) -> Attempt {
        let attempts = Mutex::new(attempts.into_iter());
        let next = || attempts.lock().unwrap().next().expect("no further attempt");
        retry.clone().run(|| async { next() }).await
    }

    /// Returns the time after which a create that always fails is given up.
    async fn given_up_after(retry: &Retry) -> Duration {
        let start = Instant::now();
        let attempt = || async { failure(StoreFailure::Timeout) };
        retry.clone().run(attempt).await.unwrap_err();
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_create_is_repeated_after_each_failure_that_can_end() {
        let mut attempts = temporary();
        attempts.push(Ok(added(false)));
        assert!(!run(&Retry::default(), attempts).await.unwrap().replayed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_cannot_end_is_not_repeated() {
        let retry = Retry::default();
        let corrupt = failure(StoreFailure::Corrupt("entry".into()));
        run(&retry, vec![corrupt]).await.unwrap_err();
        let mismatch = Err(AddPetError::IdempotencyMismatch);
        run(&retry, vec![mismatch]).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_pet_of_an_attempt_with_an_unknown_outcome_counts_as_added() {
        let retry = Retry::default();
        assert!(run(&retry, vec![Ok(added(true))]).await.unwrap().replayed);
        let unknown = failure(StoreFailure::OutcomeUnknown("closed".into()));
        let attempts = vec![unknown, Ok(added(true))];
        assert!(!run(&retry, attempts).await.unwrap().replayed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_has_accepted_a_pet_gets_a_minute_and_any_other_ten_seconds() {
        let retry = Retry::default();
        let longest_pause = Duration::from_secs(1);
        let first = given_up_after(&retry).await;
        assert!(FIRST_LIMIT <= first && first <= FIRST_LIMIT + longest_pause);

        run(&retry, vec![Ok(added(false))]).await.unwrap();
        let later = given_up_after(&retry).await;
        assert!(LIMIT <= later && later <= LIMIT + longest_pause);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_an_outage_begins_with_its_first_failure() {
        let retry = Retry::default();
        run(&retry, vec![Ok(added(false))]).await.unwrap();
        given_up_after(&retry).await;
        let mut attempts = temporary();
        attempts.push(Ok(added(false)));
        run(&retry, attempts).await.unwrap();
    }
}
