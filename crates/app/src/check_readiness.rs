use std::sync::Arc;

use crate::ports::{NotReady, Readiness};

/// Tells whether everything the service depends on can work now.
#[derive(Clone)]
pub struct CheckReadiness {
    probes: Vec<Arc<dyn Readiness>>,
}

impl CheckReadiness {
    /// Asks these probes, in this order.
    pub fn new(probes: Vec<Arc<dyn Readiness>>) -> Self {
        Self { probes }
    }

    /// Whether every probe says that it can work.
    ///
    /// # Errors
    /// What the first probe says that cannot.
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
        probe.expect_check().return_once(move || if ready { Ok(()) } else { Err(NotReady("away".into())) });
        Arc::new(probe)
    }

    #[tokio::test]
    async fn nothing_to_depend_on_is_ready() {
        assert!(CheckReadiness::new(Vec::new()).execute().await.is_ok());
    }

    #[tokio::test]
    async fn all_probes_have_to_be_ready() {
        assert!(CheckReadiness::new(vec![probe(true), probe(true)]).execute().await.is_ok());
        assert!(CheckReadiness::new(vec![probe(true), probe(false)]).execute().await.is_err());
        assert!(CheckReadiness::new(vec![probe(false), probe(true)]).execute().await.is_err());
    }
}
