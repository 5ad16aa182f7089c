//! A service whose lookups of API keys take time.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use animal_store_adapters_http::ApiSettings;
use animal_store_app::{
    ApiKey, ApiKeyDigest, ApiToken,
    ports::{ApiKeyDirectory, MockPetRepository, StoreFailure},
    test_support::api_key,
};
use animal_store_test_servers::RawConnection;
use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::service::Service;

/// A directory with one key. Its token `cached` is in memory. The lookups of `slow`, its token too, and of `guess`, an
/// unknown token, wait for a release. Every other token is found at once.
#[derive(Clone)]
struct SlowDirectory {
    started: Arc<AtomicUsize>,
    released: Arc<Semaphore>,
}

#[async_trait]
impl ApiKeyDirectory for SlowDirectory {
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        let is_guess = digest == digest_of("guess");
        if is_guess || digest == digest_of("slow") {
            self.started.fetch_add(1, Ordering::Relaxed);
            let _released = self.released.acquire().await;
        }
        Ok((!is_guess).then(|| Arc::new(api_key("key"))))
    }

    fn find_in_memory(&self, digest: &ApiKeyDigest) -> Option<Arc<ApiKey>> {
        (*digest == digest_of("cached")).then(|| Arc::new(api_key("key")))
    }
}

fn digest_of(token: &str) -> ApiKeyDigest {
    ApiToken::parse(token.into()).expect("a token").digest()
}

/// A service with such a directory.
pub(crate) struct SlowService {
    pub(crate) service: Service,
    directory: SlowDirectory,
}

impl SlowService {
    pub(crate) fn start(change: impl FnOnce(&mut ApiSettings)) -> Self {
        let directory = SlowDirectory {
            started: Arc::default(),
            released: Arc::new(Semaphore::new(0)),
        };
        let mut repository = MockPetRepository::new();
        repository.expect_list().returning(|_, _, _| Ok(Vec::new()));
        let service = Service::start_with(repository, directory.clone(), |settings| {
            change(settings);
        });
        Self { service, directory }
    }

    /// Begins a list with this token.
    pub(crate) fn begin(&self, token: &str) -> RawConnection {
        let request = self
            .service
            .anonymous("GET", "")
            .header("Authorization", &format!("Bearer {token}"));
        request.begin()
    }

    /// Number of lookups that have waited for a release.
    pub(crate) fn started(&self) -> usize {
        self.directory.started.load(Ordering::Relaxed)
    }

    /// Ends these lookups, and lets further ones end at once.
    pub(crate) fn release(&self) {
        self.directory.released.add_permits(1);
    }
}
