use std::sync::Arc;

use crate::ports::{NotReady, Readiness};

/// Checks whether all dependencies of the service are ready.
#[derive(Clone)]
pub struct CheckReadiness {
    probes: Vec<Arc<dyn Readiness>>,
}

impl CheckReadiness {
    /// Creates the use case over probes, which are checked in this order.
    pub fn new(probes: Vec<Arc<dyn Readiness>>) -> Self {
        Self { probes }
    }

    /// Checks every probe.
    ///
    /// # Errors
    /// [`NotReady`] of the first probe that is not ready.
    pub async fn execute(&self) -> Result<(), NotReady> {
        for probe in &self.probes {
            probe.check().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::MockReadiness;

    fn probe(ready: bool) -> Arc<dyn Readiness> {
        let mut probe = MockReadiness::new();
        probe.expect_check().return_once(move || if ready { Ok(()) } else { Err(NotReady("unavailable".into())) });
        Arc::new(probe)
    }

    #[tokio::test]
    async fn a_service_without_probes_is_ready() {
        assert!(CheckReadiness::new(Vec::new()).execute().await.is_ok());
    }

    #[tokio::test]
    async fn all_probes_have_to_be_ready() {
        assert!(CheckReadiness::new(vec![probe(true), probe(true)]).execute().await.is_ok());
        assert!(CheckReadiness::new(vec![probe(true), probe(false)]).execute().await.is_err());
        assert!(CheckReadiness::new(vec![probe(false), probe(true)]).execute().await.is_err());
    }
}
