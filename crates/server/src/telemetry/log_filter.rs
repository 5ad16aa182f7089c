use tracing::Level;
use tracing_subscriber::{
    Registry,
    filter::{LevelFilter, Targets},
    reload,
};

use super::{AUDIT_TARGET, RELOAD_TARGET, traces};

/// Filter of the log, which can be replaced.
///
/// It is a filter of the log's layer, not a layer: `tracing` caches its decision for each place in the code that logs,
/// so that an event takes no lock. A layer would take two.
pub(crate) struct LogFilter(reload::Handle<Targets, Registry>);

impl LogFilter {
    /// Creates a filter, and the part of it for the layer of the log.
    pub(super) fn new(filter: &Targets) -> (Self, reload::Layer<Targets, Registry>) {
        let (layer, handle) = reload::Layer::new(with_fixed_levels(filter));
        (Self(handle), layer)
    }

    /// Replaces the filter, for all events from now on.
    pub(crate) fn replace(&self, filter: &Targets) {
        self.0.reload(with_fixed_levels(filter)).expect("the log is never dropped");
    }
}

/// Adds the targets whose level the configuration cannot change. Spans are not part of the log.
fn with_fixed_levels(filter: &Targets) -> Targets {
    let events = filter.clone().with_targets([AUDIT_TARGET, RELOAD_TARGET].map(|target| (target, Level::INFO)));
    events.with_target(traces::TARGET, LevelFilter::OFF)
}
