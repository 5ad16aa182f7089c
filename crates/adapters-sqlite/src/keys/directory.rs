use std::{
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use animal_store_app::{
    ApiKey, ApiKeyDigest,
    ports::{ApiKeyDirectory, NotReady, Readiness, StoreFailure},
};
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::{sync::watch, time::timeout};

use super::{
    checked::{Checked, Tokens},
    follower::Follower,
    metrics::DirectoryMetrics,
};
use crate::{SqliteFile, SqliteFileError};

/// Looks API keys up in memory. A thread follows the changes of other connections and processes.
pub struct SqliteApiKeyDirectory {
    checked: watch::Receiver<Checked>,
    metrics: DirectoryMetrics,
    /// Longest wait for a check.
    timeout: Duration,
    /// Dropping the sender ends the thread.
    thread: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl SqliteApiKeyDirectory {
    /// Reads the API keys, and starts the thread that follows their changes until the directory is dropped. Registers
    /// the metrics of the directory. Blocking, quick.
    ///
    /// # Errors
    /// See [`SqliteFileError`].
    pub fn start(file: &SqliteFile, registry: &mut Registry) -> Result<Self, SqliteFileError> {
        let metrics = DirectoryMetrics::register(registry.sub_registry_with_prefix("keys"));
        let (sender, checked) = watch::channel(Checked::new());
        let mut follower = Follower::new(file.clone(), file.connect()?, sender, metrics.clone());
        // If that fails, each lookup fails with the reason until a check succeeds.
        follower.check();
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("api-keys".to_owned()).spawn(move || follower.run(&stopped));
        let thread = thread.map_err(|error| file.unavailable(&error))?;
        Ok(Self { checked, metrics, timeout: file.timeout(), thread: Some((stop, thread)) })
    }

    /// Waits for a check that makes the tokens trusted, or for a failed one.
    async fn wait(&self) -> Result<Arc<Tokens>, StoreFailure> {
        let mut checked = self.checked.clone();
        let is_over = |checked: &Checked| checked.failure.is_some() || checked.is_trusted(Instant::now());
        let checked = timeout(self.timeout, checked.wait_for(is_over)).await;
        let checked = checked.map_err(|_| StoreFailure::Timeout)?;
        let checked = checked.map_err(|error| StoreFailure::Unavailable(error.into()))?;
        match &checked.failure {
            None => Ok(Arc::clone(&checked.tokens)),
            Some(reason) => Err(StoreFailure::Unavailable(reason.clone().into())),
        }
    }

    /// Looks a key up, unless the tokens are no longer trusted.
    fn find_trusted(&self, digest: &ApiKeyDigest) -> Option<Result<Option<Arc<ApiKey>>, StoreFailure>> {
        let checked = self.checked.borrow();
        checked.is_trusted(Instant::now()).then(|| checked.tokens.find(digest))
    }
}

#[async_trait]
impl ApiKeyDirectory for SqliteApiKeyDirectory {
    async fn find(&self, digest: ApiKeyDigest) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        let found = match self.find_trusted(&digest) {
            Some(found) => found,
            None => self.wait().await.and_then(|tokens| tokens.find(&digest)),
        };
        found.inspect_err(|error| self.metrics.count_failure(error))
    }
}

/// Ready while checks succeed.
#[async_trait]
impl Readiness for SqliteApiKeyDirectory {
    async fn check(&self) -> Result<(), NotReady> {
        self.wait().await.map(drop).map_err(|error| NotReady(error.into()))
    }
}

/// Waits for the end of the thread: its connection is closed then. That takes as long as a check.
impl Drop for SqliteApiKeyDirectory {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.thread.take() else { return };
        drop(stop);
        // After a panic the connection is closed as well.
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(200);

    /// A directory whose checks the test makes.
    fn directory() -> (watch::Sender<Checked>, SqliteApiKeyDirectory) {
        let (sender, checked) = watch::channel(Checked::new());
        let metrics = DirectoryMetrics::register(&mut Registry::default());
        (sender, SqliteApiKeyDirectory { checked, metrics, timeout: TIMEOUT, thread: None })
    }

    async fn find(directory: &SqliteApiKeyDirectory) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        directory.find(ApiKeyDigest::from_bytes([0; 32])).await
    }

    #[tokio::test]
    async fn without_a_check_a_lookup_ends_after_the_timeout() {
        let (_sender, directory) = directory();
        assert!(matches!(find(&directory).await, Err(StoreFailure::Timeout)));
        assert!(Readiness::check(&directory).await.is_err());
    }

    #[tokio::test]
    async fn a_lookup_trusts_no_check_that_began_too_long_ago() {
        let (sender, directory) = directory();
        let began = Instant::now().checked_sub(Duration::from_millis(100)).expect("the machine runs for longer");
        sender.send_modify(|checked| checked.succeeded(began, None));
        let is_trusted = |age| sender.borrow().is_trusted(began + Duration::from_millis(age));
        assert_eq!([99, 100].map(is_trusted), [true, false]);
        assert!(directory.find_trusted(&ApiKeyDigest::from_bytes([0; 32])).is_none());
        assert!(matches!(find(&directory).await, Err(StoreFailure::Timeout)));
    }

    #[tokio::test]
    async fn a_lookup_waits_for_the_next_check() {
        let (sender, directory) = directory();
        let lookup = tokio::spawn(async move { find(&directory).await });
        tokio::task::yield_now().await;
        assert!(!lookup.is_finished());
        sender.send_modify(|checked| checked.succeeded(Instant::now() + Duration::from_mins(1), None));
        assert!(matches!(lookup.await.expect("no panic"), Ok(None)));
    }

    #[tokio::test]
    async fn a_failed_check_does_not_end_the_trust_in_the_one_before() {
        let (sender, directory) = directory();
        sender.send_modify(|checked| {
            checked.succeeded(Instant::now() + Duration::from_mins(1), None);
            checked.failure = Some("disk I/O error".to_owned());
        });
        assert!(matches!(find(&directory).await, Ok(None)));
    }

    #[tokio::test]
    async fn after_a_failed_check_or_the_end_of_the_thread_a_lookup_fails_at_once() {
        let (sender, directory) = directory();
        sender.send_modify(|checked| checked.failure = Some("no such table".to_owned()));
        assert!(matches!(find(&directory).await, Err(StoreFailure::Unavailable(_))));
        sender.send_modify(|checked| checked.failure = None);
        drop(sender);
        assert!(matches!(find(&directory).await, Err(StoreFailure::Unavailable(_))));
    }
}
