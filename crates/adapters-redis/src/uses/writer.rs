use std::{
    mem,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_app::{NotedUses, PendingUses};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use tokio::{
    select,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::recorder::UseRecorder;
use crate::{
    connection::{RedisEndpoint, describe},
    layout::Layout,
    metrics::register_series,
    settings::RedisSettings,
    use_record,
};

/// Records uses of API keys in Redis. A task of the runtime writes what the recorders note.
#[derive(Clone)]
pub struct RedisApiKeyUses {
    registration: UnboundedSender<Arc<NotedUses>>,
    max_keys: usize,
}

struct Writer {
    endpoint: RedisEndpoint,
    layout: Layout,
    timeout: Duration,
    recorders: Vec<Arc<NotedUses>>,
    /// Uses that are not written yet.
    pending: PendingUses,
    written: Counter,
    failed: Counter,
    /// Whether the last write failed.
    failing: bool,
    /// Whether uses were dropped before the last write.
    overflowing: bool,
}

impl RedisApiKeyUses {
    /// Starts the writer, and registers its metrics. The handle resolves after the last recorder and the last clone of
    /// this value are dropped, and the last uses are written or have failed, within a few times the timeout.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(endpoint: RedisEndpoint, settings: &RedisSettings, registry: &mut Registry) -> (Self, JoinHandle<()>) {
        let registry = registry.sub_registry_with_prefix("keys");
        let help = "Batches of last uses of API keys that were written to Redis: written or failed";
        let [written, failed] = register_series(registry, "use_writes", help, "result", ["written", "failed"]);
        let writer = Writer {
            endpoint,
            layout: Layout::new(&settings.prefix),
            timeout: settings.timeout,
            recorders: Vec::new(),
            pending: PendingUses::new(settings.max_known),
            written,
            failed,
            failing: false,
            overflowing: false,
        };
        let (registration, registrations) = unbounded_channel();
        let task = tokio::spawn(writer.run(registrations, settings.use_interval));
        (Self { registration, max_keys: settings.max_known }, task)
    }

    /// Creates the recorder of one worker.
    pub fn recorder(&self) -> UseRecorder {
        UseRecorder::new(self.max_keys, self.registration.clone())
    }
}

impl Writer {
    async fn run(mut self, mut registrations: UnboundedReceiver<Arc<NotedUses>>, interval: Duration) {
        let mut ticks = interval_at(Instant::now() + interval, interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            select! {
                registration = registrations.recv() => match registration {
                    Some(recorder) => self.recorders.push(recorder),
                    None => return self.write().await,
                },
                _ = ticks.tick() => self.write().await,
            }
        }
    }

    /// Writes all uses that are noted or pending. If that fails, they stay pending.
    async fn write(&mut self) {
        let now = this_minute();
        self.collect(now);
        if self.pending.is_empty() {
            return;
        }
        match self.send(now).await {
            Ok(()) => {
                self.written.inc();
                self.pending.clear();
                if mem::take(&mut self.failing) {
                    tracing::info!(address = %self.endpoint, "the last uses of API keys are written to Redis again");
                }
            }
            Err(reason) => {
                self.failed.inc();
                if !mem::replace(&mut self.failing, true) {
                    tracing::warn!(
                        address = %self.endpoint,
                        reason,
                        "the last uses of API keys cannot be written to Redis: `keys list` does not show them"
                    );
                }
            }
        }
    }

    /// Takes the notes of all workers.
    fn collect(&mut self, now: u64) {
        let dropped = self.pending.collect(&self.recorders, now);
        if dropped > 0 && !self.overflowing {
            tracing::warn!(dropped, "uses of API keys were not recorded: more keys are used than keys.redis.max_known");
        }
        self.overflowing = dropped > 0;
    }

    async fn send(&self, now: u64) -> Result<(), String> {
        let connection = self.endpoint.connect(self.timeout, |_| ()).await;
        let mut connection = connection.map_err(|error| error.to_string())?;
        let written = use_record::write(&self.layout, &self.pending, now).exec_async(&mut connection).await;
        written.map_err(|error| describe(&self.endpoint, &error, &self.layout.uses("*")))
    }
}

/// Returns the current minute, in seconds since 1970.
fn this_minute() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    now - now % 60
}
