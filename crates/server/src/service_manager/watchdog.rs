//! The watchdog of the service manager (`WATCHDOG_USEC`), which restarts a service that it hears nothing from.
//! A notification says that every worker has executed a task since the one before: one blocked worker is enough to end
//! them. Without a watchdog, nothing runs.

use std::time::Duration;

use animal_store_adapters_http::WorkerProgress;
use tokio::time::{MissedTickBehavior, interval};

use super::Notifier;

/// Notifies the watchdog twice in its timeout, each time after every worker has made progress. Returns at once without
/// a watchdog.
pub(crate) async fn notify_periodically(notifier: Notifier, workers: WorkerProgress) {
    let timeout = sd_notify::watchdog_enabled().filter(|timeout| *timeout >= Duration::from_millis(2));
    let Some(timeout) = timeout.filter(|_| notifier.is_enabled()) else { return };
    let mut ticks = interval(timeout / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        workers.confirm().await;
        notifier.watchdog();
    }
}
