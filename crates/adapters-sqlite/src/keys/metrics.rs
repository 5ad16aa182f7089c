//! Metrics of API keys. `docs/metrics.md` has their names and meanings.

use animal_store_app::ports::StoreFailure;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Handles of the metrics of a directory.
#[derive(Clone)]
pub(super) struct DirectoryMetrics {
    pub(super) tokens: Gauge,
    pub(super) reloads: Counter,
    /// In the order of [`Self::count_failure`].
    failures: [Counter; 3],
}

impl DirectoryMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let help = "Lookups without a result: timeout, unavailable or corrupt";
        let reasons = ["timeout", "unavailable", "corrupt"];
        let failures = register_series(registry, "lookup_failures", help, "reason", reasons);
        let metrics = Self { tokens: Gauge::default(), reloads: Counter::default(), failures };
        registry.register("tokens", "Tokens in memory", metrics.tokens.clone());
        let help = "Times that the tokens were read from the file because the API keys had changed";
        registry.register("reloads", help, metrics.reloads.clone());
        metrics
    }

    pub(super) fn count_failure(&self, error: &StoreFailure) {
        let [timeout, unavailable, corrupt] = &self.failures;
        let counter = match error {
            StoreFailure::Timeout => timeout,
            StoreFailure::Unavailable(_) | StoreFailure::Overloaded => unavailable,
            StoreFailure::Corrupt(_) => corrupt,
        };
        counter.inc();
    }
}

/// Registers a counter for each value of a label, and returns them in this order.
pub(super) fn register_series<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    values: [&'static str; N],
) -> [Counter; N] {
    let family = Family::<[(&str, &str); 1], Counter>::default();
    let counters = values.map(|value| family.get_or_create_owned(&[(label, value)]));
    registry.register(name, help, family);
    counters
}
