use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::ports::{Cause, Readiness};

/// Checks whether this instance should receive requests. A check without a probe is always ready.
#[derive(Clone)]
pub struct CheckReadiness {
    storage: Option<Arc<dyn Readiness>>,
    keys: Option<Arc<dyn Readiness>>,
    draining: Arc<AtomicBool>,
}

impl CheckReadiness {
    /// Creates the use case over the probes of the storage and of the source of API keys.
    pub fn new(storage: Option<Arc<dyn Readiness>>, keys: Option<Arc<dyn Readiness>>) -> Self {
        Self {
            storage,
            keys,
            draining: Arc::default(),
        }
    }

    /// Checks whether pets can be read and added.
    ///
    /// # Errors
    /// The reason why they cannot.
    pub async fn storage(&self) -> Result<(), Cause> {
        check(self.storage.as_deref()).await
    }

    /// Checks whether API keys can be looked up.
    ///
    /// # Errors
    /// The reason why they cannot.
    pub async fn keys(&self) -> Result<(), Cause> {
        check(self.keys.as_deref()).await
    }

    /// From now on, the instance is draining: it should not receive new requests, whatever its dependencies report.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Returns whether the instance is draining.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

async fn check(probe: Option<&dyn Readiness>) -> Result<(), Cause> {
    let Some(probe) = probe else { return Ok(()) };
    probe.check().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::MockReadiness;

    #[tokio::test]
    async fn each_check_has_its_own_probe_and_clones_drain_together() {
        let unavailable = || {
            let mut probe = MockReadiness::new();
            probe
                .expect_check()
                .return_once(|| Err("unavailable".into()));
            Some(Arc::new(probe) as Arc<dyn Readiness>)
        };
        let storage = CheckReadiness::new(unavailable(), None);
        assert!(storage.storage().await.is_err() && storage.keys().await.is_ok());
        let keys = CheckReadiness::new(None, unavailable());
        assert!(keys.storage().await.is_ok() && keys.keys().await.is_err() && !keys.is_draining());
        keys.clone().start_draining();
        assert!(keys.is_draining());
    }
}
