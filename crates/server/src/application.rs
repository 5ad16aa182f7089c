//! The service from start to shutdown.
//!
//! `build` binds the listeners and starts the adapters; `run_until` serves. A shutdown runs in this order: `/ready` is
//! 503 and responses announce the end of their connections, the drain delay passes, no new connections are accepted,
//! requests in flight are completed, the writers of the storage and of uses end, the management listener closes. At the
//! deadline, or at a second signal, the rest is cut off: an error if requests were in flight. While connections are
//! accepted, the end of any task is an error: without it, a part of the service would fail until a restart. A writer of
//! the storage that fails is an error during the whole shutdown.

#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use animal_store_adapters_http::{ApiServer, serve_api, serve_management};
use animal_store_app::CheckReadiness;
use animal_store_http1::{CurrentTlsIdentity, HttpServer};
use animal_store_telemetry::process_metrics;
use anyhow::{anyhow, ensure};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use tokio::{
    task::{JoinError, JoinHandle, JoinSet},
    time::{sleep_until, timeout},
};

use crate::{
    backends::Access,
    certificates,
    config::{Config, ShutdownConfig},
    listeners::Listeners,
    shutdown::Signals,
    version,
    wiring::{self, Adapters},
};

/// Timeout for closing connections that are cut off, and for the batch that is being committed. The end of the process
/// closes the others.
const ABORT_TIMEOUT: Duration = Duration::from_millis(100);

/// The service, which accepts connections.
pub struct Application {
    api: Arc<ApiServer>,
    management: Option<HttpServer>,
    tasks: Tasks,
    readiness: CheckReadiness,
    shutdown: ShutdownConfig,
    drain_delay: Duration,
}

impl Application {
    /// Binds the listeners and starts the adapters. `dropped_log_lines` is shown by the metrics.
    ///
    /// # Errors
    /// If an address cannot be bound or the storage cannot be used. An unavailable dependency is an error only if the
    /// configuration requires it.
    pub async fn build(config: Config, dropped_log_lines: Counter) -> anyhow::Result<Self> {
        let listeners = Listeners::bind(&config, None)?;
        Self::start(config, listeners, Access::of_service(), dropped_log_lines).await
    }

    /// Starts the adapters behind listeners that are bound.
    pub(crate) async fn start(
        config: Config,
        Listeners {
            api: listener,
            management,
        }: Listeners,
        access: Access,
        dropped_log_lines: Counter,
    ) -> anyhow::Result<Self> {
        let Config {
            http,
            tls,
            stores,
            shutdown,
            ..
        } = config;
        let drain_delay = if listener.is_inherited {
            shutdown.inherited_drain_delay
        } else {
            shutdown.drain_delay
        };
        let mut registry = Registry::default();
        let prefixed = process_metrics::register(&mut registry, version::BUILD, dropped_log_lines);
        let Adapters {
            use_cases,
            readiness,
            writer,
            api_key_tasks,
            api_key_session,
        } = wiring::start(&stores, access, prefixed).await?;
        let tls = tls.map(CurrentTlsIdentity::new);
        let mut background = JoinSet::new();
        if let Some(session) = api_key_session {
            background.spawn(async { _ = session.await });
        }
        if let Some(identity) = &tls {
            background.spawn(certificates::watch(identity.clone()));
        }
        let (api, api_task) = serve_api(listener, http, tls, prefixed, use_cases)?;
        let registry = Arc::new(registry);
        let management =
            management.map(|listener| serve_management(listener, &readiness, registry));
        let (management, management_task) = management.transpose()?.unzip();
        let tasks = Tasks {
            api: api_task,
            management: management_task,
            writer,
            api_keys: api_key_tasks.into_iter().collect(),
            background,
        };
        Ok(Self {
            api: Arc::new(api),
            management,
            tasks,
            readiness,
            shutdown,
            drain_delay,
        })
    }

    /// Address of the API.
    pub fn address(&self) -> SocketAddr {
        self.api.server.address
    }

    /// The API, for reloads.
    pub(crate) fn api(&self) -> Arc<ApiServer> {
        Arc::clone(&self.api)
    }

    /// Address of the management listener.
    pub fn management_address(&self) -> Option<SocketAddr> {
        self.management.as_ref().map(|server| server.address)
    }

    /// Runs a task that has to live as long as the service, and ends with it.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.background.spawn(task);
    }

    /// Serves until the first signal, then shuts down gracefully. The second one ends the shutdown early.
    ///
    /// # Errors
    /// If a task stops unexpectedly, or requests are cut off.
    pub async fn run_until(self, signals: &Signals) -> anyhow::Result<()> {
        let Self {
            api,
            management,
            mut tasks,
            ..
        } = self;
        let request = tokio::select! {
            biased;
            request = signals.first() => request,
            error = tasks.stopped_unexpectedly() => return Err(error),
        };

        self.readiness.start_draining();
        api.server.announce_close();
        tracing::info!(in_flight = api.in_flight(), "shutting down");
        let drain_delay = if request.drain {
            self.drain_delay
        } else {
            Duration::ZERO
        };
        let complete = async {
            if let Ok(error) = timeout(drain_delay, tasks.stopped_unexpectedly()).await {
                return Err(error);
            }
            api.server.stop(self.shutdown.idle_grace).await;
            tasks.complete().await
        };
        let result = tokio::select! {
            result = complete => result.map(|()| tracing::info!("all requests were completed")),
            () = sleep_until(request.arrived_at + self.shutdown.requests_timeout) =>
                cut_off("the shutdown timeout passed", api.in_flight()),
            () = signals.second() => cut_off("a second signal arrived", api.in_flight()),
        };
        let close = async {
            api.server.abort().await;
            if let Some(management) = &management {
                management.abort().await;
            }
            tasks.finish_writers().await
        };
        // If requests were cut off, the end of a writer changes nothing.
        let _ = timeout(ABORT_TIMEOUT, close).await;
        result
    }
}

/// The tasks that run until the shutdown ends them. If one ends before, the process ends.
struct Tasks {
    api: JoinHandle<io::Result<()>>,
    management: Option<JoinHandle<io::Result<()>>>,
    writer: Option<JoinHandle<()>>,
    api_keys: JoinSet<Result<(), JoinError>>,
    /// The shutdown does not wait for their ends.
    background: JoinSet<()>,
}

impl Tasks {
    /// Waits for the first task that stops, and describes its end. The writer ends after the API server: the server is
    /// polled first, so that its error is reported.
    async fn stopped_unexpectedly(&mut self) -> anyhow::Error {
        tokio::select! {
            biased;
            result = &mut self.api => task_error(API, result),
            Some(result) = ended(&mut self.management) => task_error("the management server", result),
            Some(result) = ended(&mut self.writer) => task_error(WRITER, result.map(Ok)),
            Some(_) = self.api_keys.join_next() => task_error("a task of API keys", Ok(Ok(()))),
            Some(_) = self.background.join_next() => task_error("a background task", Ok(Ok(()))),
        }
    }

    /// Waits until all requests and all writes are completed.
    async fn complete(&mut self) -> anyhow::Result<()> {
        match (&mut self.api).await {
            Ok(Ok(())) => self.finish_writers().await,
            result => Err(task_error(API, result)),
        }
    }

    /// Waits for the ends of the writers. They have dropped what they keep open: the file is closed.
    async fn finish_writers(&mut self) -> anyhow::Result<()> {
        let writer = ended(&mut self.writer).await;
        // A panic was logged.
        while self.api_keys.join_next().await.is_some() {}
        writer
            .unwrap_or(Ok(()))
            .map_err(|error| task_error(WRITER, Err(error)))
    }
}

const API: &str = "the HTTP server";
const WRITER: &str = "the writer of the storage";

/// Returns the outcome of a shutdown that ends early. A client that only reads its response does not count, nor does a
/// create of a client that has disconnected.
fn cut_off(reason: &str, in_flight: i64) -> anyhow::Result<()> {
    ensure!(
        in_flight == 0,
        "{reason}: requests in flight that were cut off: {in_flight}"
    );
    tracing::info!(
        reason,
        "open connections were closed: no request was in flight"
    );
    Ok(())
}

/// Waits for the end of a task, if there is one that has not ended.
async fn ended<T>(task: &mut Option<JoinHandle<T>>) -> Option<Result<T, JoinError>> {
    let result = task.as_mut()?.await;
    *task = None;
    Some(result)
}

/// Describes a task that stopped unexpectedly.
fn task_error(task: &str, result: Result<io::Result<()>, JoinError>) -> anyhow::Error {
    match result {
        Ok(Ok(())) => anyhow!("{task} stopped unexpectedly"),
        Ok(Err(error)) => anyhow::Error::new(error).context(format!("{task} failed")),
        Err(error) => anyhow::Error::new(error).context(format!("{task} stopped unexpectedly")),
    }
}
