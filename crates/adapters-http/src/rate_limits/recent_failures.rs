//! The state of the limiter of failed authentications: at most [`MAX_NETWORKS`] entries, whatever clients send.

use std::{
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use governor::{
    nanos::Nanos,
    state::{StateStore, keyed::ShrinkableKeyedStateStore},
};
use quick_cache::unsync::Cache;

/// Maximum number of networks. They take about 1 MB.
pub(super) const MAX_NETWORKS: usize = 10_000;

/// A network, and whether its state changes: governor always counts what it checks.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Check {
    pub(super) network: IpAddr,
    pub(super) counts: bool,
}

/// The networks of recent failures, with their theoretical arrival time (GCRA). At its maximum, a new network replaces
/// one without recent checks. That network can fail as if it were new, and no network is refused because of others.
pub(super) struct RecentFailures(Mutex<Cache<IpAddr, Nanos>>);

impl RecentFailures {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Cache::new(MAX_NETWORKS)))
    }

    fn lock(&self) -> MutexGuard<'_, Cache<IpAddr, Nanos>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateStore for RecentFailures {
    type Key = Check;

    fn measure_and_replace<T, F, E>(&self, check: &Check, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut networks = self.lock();
        let (outcome, next) = decide(networks.get(&check.network).copied())?;
        if check.counts {
            networks.insert(check.network, next);
        }
        Ok(outcome)
    }
}

impl ShrinkableKeyedStateStore<Check> for RecentFailures {
    fn retain_recent(&self, drop_below: Nanos) {
        self.lock().retain(|_, arrival| *arrival > drop_below);
    }

    fn len(&self) -> usize {
        self.lock().len()
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}
