use std::sync::Weak;

use animal_store_app::ports::{NotReady, Readiness, StoreFailure};
use animal_store_domain::PetId;
use async_trait::async_trait;

use crate::threads::Threads;

/// Probe of the file: ready if a pet can be read, a transaction of a create can begin, and the path still names the
/// file. It does not keep the threads from ending.
pub(crate) struct SqliteReadiness(pub(crate) Weak<Threads>);

#[async_trait]
impl Readiness for SqliteReadiness {
    async fn check(&self) -> Result<(), NotReady> {
        let failed = |error: StoreFailure| match error {
            StoreFailure::Unavailable(cause) | StoreFailure::Corrupt(cause) => NotReady(cause),
            error => NotReady(error.into()),
        };
        let threads = self.0.upgrade().ok_or_else(|| NotReady("the storage has ended".into()))?;
        let first = PetId::parse(1).map_err(|error| NotReady(error.into()))?;
        threads.reads.find(first).await.map_err(failed)?;
        threads.creates.check().await.map_err(failed)
    }
}
