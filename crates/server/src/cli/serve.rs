//! Serves: configuration, log, listeners, first API key and adapters, then reloads until a signal.
//!
//! A signal ends the start. At the end, the last spans and the log share what is left of `shutdown.timeout`.

use animal_store_adapters_http::management_limits;
use animal_store_http1::{ConnectionLimits, HttpListener};
use animal_store_telemetry::Traces;
use anyhow::{Context, bail};
use prometheus_client::metrics::counter::Counter;
use rlimit::Resource;
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until},
};

use super::{command::block_on, options::Options, quickstart};
use crate::{
    application::Application,
    backends::Access,
    config::{Config, ShutdownConfig},
    listeners::Listeners,
    reload::Reload,
    service_manager::{is_notified, notify_ready, notify_stopping, take_socket},
    shutdown::Signals,
    version,
    wiring::exposures,
};

/// Files that are neither connections of clients nor of the storage: listeners, the main runtime, Redis, the log.
const OTHER_FILES: usize = 128;

/// Files of the runtime of a worker.
const FILES_PER_WORKER: usize = 4;

/// Runs the service until a signal ends it.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    // Before the runtime has threads.
    let socket = take_socket()?;
    block_on(serve(options, socket))
}

async fn serve(options: &Options, socket: Option<HttpListener>) -> anyhow::Result<()> {
    // Before anything is read or started. Earlier, in the first milliseconds, a signal kills the process.
    let signals = Signals::listen()?;
    signals.listen_for_reloads()?;
    // Again at each SIGHUP.
    let loaded = options.clone();
    let has_socket = socket.is_some();
    let load = move || {
        let sources = loaded.sources()?;
        if has_socket {
            Config::load_with_socket(&sources)
        } else {
            Config::load(&sources)
        }
    };
    let config = tokio::select! {
        biased;
        _ = signals.first() => return Ok(()),
        config = spawn_blocking(load.clone()) => config??,
    };
    let traces = Traces::start(config.traces.as_ref(), version::BUILD)
        .context("traces cannot be sent (traces.endpoint)")?;
    let (log, filter) = animal_store_telemetry::start(&config.log.settings, traces.layer())?;
    for warning in config.values.warnings() {
        tracing::warn!("{warning}");
    }
    let values = config.values.clone();
    let shutdown = config.shutdown;
    let first_signal = signals.clone();
    tokio::spawn(async move {
        first_signal.first().await;
        notify_stopping(shutdown.timeout);
    });
    let start = start(config, options, socket, log.dropped_lines());
    let result = tokio::select! {
        biased;
        _ = signals.first() => Ok(()),
        started = start => match started {
            Ok(mut application) => {
                let reload = Reload {
                    api: application.api(),
                    filter,
                    values,
                };
                application.spawn(reload.run(signals.clone(), load));
                application.run_until(&signals).await
            }
            Err(error) => Err(error),
        },
    };
    let finished = finish(traces.finish(), log.finish(), &shutdown, &signals).await;
    match (result, finished) {
        (Err(error), Err(unwritten)) => bail!("{error:#}; {unwritten}"),
        (result, finished) => result.and(finished),
    }
}

/// Starts the application. Until the event `listening`, a signal ends the start; from then on, it shuts the application
/// down, which closes the file.
async fn start(
    mut config: Config,
    options: &Options,
    socket: Option<HttpListener>,
    dropped_log_lines: Counter,
) -> anyhow::Result<Application> {
    let limits = &mut config.http.connections;
    let pets = config.stores.pets.backend();
    reserve_files(limits, pets.connections(limits.workers))?;
    let is_managed = socket.is_some() || is_notified();
    // Before the adapters, which can take seconds to start: an address in use is reported at once.
    let listeners = Listeners::bind(&config, socket)?;
    let address = listeners.api.address;
    let inherited = listeners.api.is_inherited.then_some(true);
    if config.is_unencrypted(address) {
        tracing::warn!(
            %address,
            "other machines can connect without TLS: set http.tls.cert_file, or put a proxy in front and name it in \
             http.trusted_proxies"
        );
    }
    for finding in exposures(&config.stores) {
        tracing::warn!("{}: {}", finding.found, finding.advice.unwrap_or_default());
    }
    let mut access = Access::of_service();
    quickstart::run(&mut config, address, &mut access, options, is_managed).await?;
    let application = Application::start(config, listeners, access, dropped_log_lines).await?;
    let management = application
        .management_address()
        .map(|address| address.to_string());
    tracing::info!(%address, management, inherited, version = version::DESCRIPTION.as_str(), "listening");
    notify_ready(address);
    Ok(application)
}

/// Sends the last spans, at most until the time that is reserved for the log. Then writes the last lines of the log, at
/// most until `shutdown.timeout` has passed since the first signal. If the process did not run at that time, the log
/// still has the time that is reserved for it.
async fn finish(
    traces: impl Future<Output = ()>,
    log: impl Future<Output = ()>,
    shutdown: &ShutdownConfig,
    signals: &Signals,
) -> anyhow::Result<()> {
    let end_requested_at = signals
        .request()
        .map_or_else(Instant::now, |request| request.arrived_at);
    tokio::select! {
        biased;
        () = traces => {}
        () = sleep_until(end_requested_at + shutdown.requests_timeout) => {}
        () = signals.second() => {}
    }
    let timeout = shutdown.timeout;
    let end = (end_requested_at + timeout).max(Instant::now() + shutdown.log_timeout);
    tokio::select! {
        biased;
        () = log => Ok(()),
        () = sleep_until(end) => bail!("the log could not be written to standard output within {timeout:?}"),
        () = async { signals.second().await; sleep(shutdown.log_timeout).await } =>
            bail!("a second signal arrived, and the log could not be written to standard output"),
    }
}

/// Raises the soft limit of open files, up to the hard limit. If that is too low, lowers `http.max_connections`:
/// clients of the API cannot take the files that the management listener, the storage, Redis and the log need.
///
/// # Errors
/// If the limit is too low for any connection.
fn reserve_files(limits: &mut ConnectionLimits, storage_connections: usize) -> anyhow::Result<()> {
    let workers = FILES_PER_WORKER * limits.workers;
    let reserved = management_limits().sockets() + storage_connections + workers + OTHER_FILES;
    let wanted = limits.sockets() + reserved;
    let limit =
        rlimit::increase_nofile_limit(wanted as u64).or_else(|_| Resource::NOFILE.get_soft())?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit >= wanted {
        return Ok(());
    }
    if !limits.reduce_sockets(limit.saturating_sub(reserved)) {
        bail!(
            "the limit of open files, {limit}, is too low for any connection: raise it (ulimit -n) to {wanted}"
        );
    }
    let max_connections = limits.max_connections;
    tracing::warn!(
        limit,
        wanted,
        max_connections,
        "the limit of open files is too low for http.max_connections"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use tokio::time::advance;

    use super::*;
    use crate::config::{Config, Sources};

    /// A shutdown with a timeout of one second.
    fn shutdown() -> ShutdownConfig {
        let flags = vec![("shutdown.timeout".to_owned(), "1s".to_owned())];
        Config::load(&Sources {
            flags,
            ..Sources::default()
        })
        .expect("a valid configuration")
        .shutdown
    }

    /// A first signal that has arrived now.
    fn first_signal() -> Signals {
        let signals = Signals::default();
        signals.request_shutdown(true);
        signals
    }

    #[tokio::test(start_paused = true)]
    async fn spans_that_cannot_be_sent_leave_the_log_its_time() {
        let start = Instant::now();
        let log = async {
            assert_eq!(start.elapsed(), Duration::from_millis(750));
            pending::<()>().await;
        };
        finish(pending(), log, &shutdown(), &first_signal())
            .await
            .expect_err("it is not written");
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_log_of_a_process_that_did_not_run_at_its_end_is_written() {
        let signals = first_signal();
        advance(Duration::from_secs(10)).await;
        let log = sleep(Duration::from_millis(249));
        finish(pending(), log, &shutdown(), &signals)
            .await
            .expect("it is written");
        let unwritten = finish(pending(), pending(), &shutdown(), &signals)
            .await
            .expect_err("it is not written");
        assert_eq!(
            unwritten.to_string(),
            "the log could not be written to standard output within 1s"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_ends_the_wait_for_spans_at_once_and_that_for_the_log_soon() {
        let start = Instant::now();
        let signals = first_signal();
        signals.end_shutdown();
        let log = async {
            assert_eq!(start.elapsed(), Duration::ZERO);
            pending::<()>().await;
        };
        let unwritten = finish(pending(), log, &shutdown(), &signals)
            .await
            .expect_err("it is not written");
        assert!(
            unwritten.to_string().contains("second signal"),
            "{unwritten}"
        );
        assert_eq!(start.elapsed(), Duration::from_millis(250));
    }
}
