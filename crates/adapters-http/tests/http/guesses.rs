//! The limit on failed authentications, with lookups of API keys that take time.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiToken,
    ports::{ApiKeyDirectory, MockPetRepository, StoreFailure},
    test_support::api_key,
};
use animal_store_test_servers::{RawConnection, Response, wait_until};
use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::service::Service;

/// More than the limit.
const BURST: usize = 40;
const LIMIT: usize = 5;

/// A directory with the tokens `valid` and `cached`. A lookup waits for a release; `cached` needs none.
#[derive(Clone)]
struct SlowDirectory {
    started: Arc<AtomicUsize>,
    released: Arc<Semaphore>,
}

#[async_trait]
impl ApiKeyDirectory for SlowDirectory {
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let _released = self.released.acquire().await;
        Ok((digest == digest_of("valid")).then(|| Arc::new(api_key("key"))))
    }

    fn find_in_memory(&self, digest: &ApiKeyDigest) -> Option<Arc<ApiKey>> {
        (*digest == digest_of("cached")).then(|| Arc::new(api_key("key")))
    }
}

fn digest_of(token: &str) -> ApiKeyDigest {
    ApiToken::parse(token.into()).expect("a token").digest()
}

/// A service that admits a few failures per minute.
struct Guesses {
    service: Service,
    directory: SlowDirectory,
}

impl Guesses {
    fn start() -> Self {
        let directory = SlowDirectory {
            started: Arc::default(),
            released: Arc::new(Semaphore::new(0)),
        };
        let mut repository = MockPetRepository::new();
        repository.expect_list().returning(|_, _, _| Ok(Vec::new()));
        let service = Service::start_with(repository, directory.clone(), |settings| {
            settings.auth_failures = NonZeroU32::new(5);
        });
        Self { service, directory }
    }

    fn begin(&self, token: &str) -> RawConnection {
        let request = self
            .service
            .anonymous("GET", "")
            .header("Authorization", &format!("Bearer {token}"));
        request.begin().expect("a connection")
    }

    /// Begins a burst, and returns when each of its requests is in flight.
    fn begin_burst(&self, token: &str) -> Vec<RawConnection> {
        let burst: Vec<_> = (0..BURST).map(|_| self.begin(token)).collect();
        let expected = format!("http_requests_in_flight {BURST}");
        wait_until(|| self.service.metrics().lines().any(|line| line == expected));
        burst
    }

    fn started(&self) -> usize {
        self.directory.started.load(Ordering::Relaxed)
    }

    fn release(&self) {
        self.directory.released.add_permits(1);
    }
}

fn statuses(burst: Vec<RawConnection>) -> Vec<u16> {
    let status = |mut connection: RawConnection| connection.response().status;
    burst.into_iter().map(status).collect()
}

#[test]
fn in_one_burst_of_guesses_as_many_are_looked_up_as_may_fail() {
    let guesses = Guesses::start();
    let burst = guesses.begin_burst("guess");
    assert_eq!(guesses.started(), LIMIT);

    guesses.release();
    let statuses = statuses(burst);
    let with = |status| statuses.iter().filter(|&&given| given == status).count();
    assert_eq!((with(401), with(429)), (LIMIT, BURST - LIMIT));
    assert_eq!(guesses.started(), LIMIT);
}

#[test]
fn one_burst_of_requests_with_a_valid_key_is_served() {
    let guesses = Guesses::start();
    let burst = guesses.begin_burst("valid");
    assert_eq!(guesses.started(), LIMIT);

    guesses.release();
    assert_eq!(statuses(burst), [200; BURST]);
}

#[test]
fn a_key_in_memory_is_served_while_lookups_have_every_token() {
    let guesses = Guesses::start();
    let burst = guesses.begin_burst("guess");

    guesses.begin("cached").response().assert_status(200);

    guesses.release();
    statuses(burst);
    let refused: Response = guesses.begin("cached").response();
    refused.assert_error(429, "rate_limited");
}
