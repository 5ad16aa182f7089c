use animal_store_adapters_http::Limits;
use animal_store_adapters_sqlite::FileUse;
use anyhow::bail;
use prometheus_client::metrics::counter::Counter;
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until},
};

use super::{command::block_on, options::Options, quickstart};
use crate::{
    application::Application,
    config::{Config, ShutdownConfig},
    listeners::Listeners,
    reload::Reload,
    service_manager::ServiceManager,
    shutdown::Signals,
    telemetry::{self, Traces},
    version,
    wiring::SharedFile,
};

/// Files that are neither connections of clients nor of the storage: listeners, the main runtime, Redis, the log.
const OTHER_FILES: usize = 128;

/// Files of the runtime of a worker.
const FILES_PER_WORKER: usize = 4;

/// Runs the service until a signal ends it.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    // Before the runtime has threads.
    let manager = ServiceManager::from_environment()?;
    block_on(serve(options, manager))
}

async fn serve(options: &Options, manager: ServiceManager) -> anyhow::Result<()> {
    // Before anything is read or started. Earlier, in the first milliseconds, a signal kills the process.
    let signals = Signals::listen()?;
    let reloads = signals.listen_for_reloads()?;
    // Again at each SIGHUP.
    let loaded = options.clone();
    let load = move || Config::load(&loaded.sources());
    let config = tokio::select! {
        biased;
        _ = signals.first() => return Ok(()),
        config = spawn_blocking(load.clone()) => config??,
    };
    let traces = Traces::start(config.traces.as_ref())?;
    let (log, filter) = telemetry::start(&config.log, traces.layer())?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    tokio::spawn(Reload::new(&config, filter).run(reloads, load));
    let shutdown = config.shutdown;
    let result = start_and_run(config, options, manager, log.dropped_lines(), &signals).await;
    let end_requested_at = signals.request().map_or_else(Instant::now, |request| request.arrived_at);
    let finished = finish(traces.finish(), log.finish(), end_requested_at, &shutdown, || signals.second()).await;
    match (result, finished) {
        (Err(error), Err(unwritten)) => bail!("{error:#}; {unwritten}"),
        (result, finished) => result.and(finished),
    }
}

async fn start_and_run(
    mut config: Config,
    options: &Options,
    mut manager: ServiceManager,
    dropped_log_lines: Counter,
    signals: &Signals,
) -> anyhow::Result<()> {
    let limits = &mut config.http.limits;
    reserve_files(limits, config.storage.connections(limits.workers))?;
    let (is_managed, socket) = (manager.is_present(), manager.socket.take());
    let shutdown_timeout = config.shutdown.timeout;
    let start = async {
        // Before the adapters, which can take seconds to start: an address in use is reported at once.
        let listeners = Listeners::bind(&config, socket)?;
        let inherited = listeners.api.is_inherited().then_some(true);
        if config.is_unencrypted(listeners.address) {
            tracing::warn!(
                address = %listeners.address,
                "other machines can connect without TLS: set http.tls.cert_file, or put a proxy in front and name it \
                 in http.trusted_proxies"
            );
        }
        let mut file = SharedFile::new(FileUse::Create);
        quickstart::run(&mut config, listeners.address, &mut file, options, is_managed).await?;
        let application = Application::start(config, listeners, file, dropped_log_lines).await?;
        // The end of the start: from this event on, a signal shuts the application down, which closes the file.
        let management = application.management_address().map(|address| address.to_string());
        let (address, version) = (application.address(), version::BUILD);
        tracing::info!(%address, management, inherited, version, "listening");
        anyhow::Ok(application)
    };
    let started = tokio::select! {
        biased;
        _ = signals.first() => Ok(None),
        application = start => application.map(Some),
    };
    let Ok(Some(application)) = started else {
        manager.stopping(shutdown_timeout);
        return started.map(drop);
    };
    manager.ready(application.address());
    let stop = async {
        let request = signals.first().await;
        manager.stopping(shutdown_timeout);
        request
    };
    application.run_until(stop, signals.second()).await
}

/// Sends the last spans, at most until the time that is reserved for the log. Then writes the last lines of the log, at
/// most until `shutdown.timeout` has passed. If the process did not run at that time, the log still has the time that
/// is reserved for it.
async fn finish(
    traces: impl Future<Output = ()>,
    log: impl Future<Output = ()>,
    end_requested_at: Instant,
    shutdown: &ShutdownConfig,
    second_signal: impl AsyncFn(),
) -> anyhow::Result<()> {
    tokio::select! {
        biased;
        () = traces => {}
        () = sleep_until(end_requested_at + shutdown.requests_timeout()) => {}
        () = second_signal() => {}
    }
    let timeout = shutdown.timeout;
    let end = (end_requested_at + timeout).max(Instant::now() + shutdown.log_timeout());
    tokio::select! {
        biased;
        () = log => Ok(()),
        () = sleep_until(end) => bail!("the log could not be written to standard output within {timeout:?}"),
        () = async { second_signal().await; sleep(ShutdownConfig::LOG_TIMEOUT).await } =>
            bail!("a second signal arrived, and the log could not be written to standard output"),
    }
}

/// Raises the soft limit of open files, up to the hard limit. If that is too low, lowers `http.max_connections`:
/// clients of the API cannot take the files that the management listener, the storage, Redis and the log need.
///
/// # Errors
/// If the limit is too low for any connection.
fn reserve_files(limits: &mut Limits, storage_connections: usize) -> anyhow::Result<()> {
    let workers = FILES_PER_WORKER * limits.workers;
    let reserved = Limits::MANAGEMENT_SOCKETS + storage_connections + workers + OTHER_FILES;
    let wanted = limits.sockets() + reserved;
    let limit = match rlimit::increase_nofile_limit(wanted as u64) {
        Ok(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        Err(error) => {
            tracing::warn!(%error, wanted, "the limit of open files cannot be raised");
            return Ok(());
        }
    };
    if limit >= wanted {
        return Ok(());
    }
    if !limits.reduce_sockets(limit.saturating_sub(reserved)) {
        bail!("the limit of open files, {limit}, is too low for any connection: raise it (ulimit -n) to {wanted}");
    }
    let max_connections = limits.max_connections;
    tracing::warn!(limit, wanted, max_connections, "the limit of open files is too low for http.max_connections");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        time::Duration,
    };

    use tokio::time::advance;

    use super::*;
    use crate::config::{Config, Sources};

    /// A shutdown with a timeout of one second.
    fn shutdown() -> ShutdownConfig {
        let flags = vec![("shutdown.timeout".to_owned(), "1s".to_owned())];
        Config::load(&Sources { flags, ..Sources::default() }).expect("a valid configuration").shutdown
    }

    #[tokio::test(start_paused = true)]
    async fn spans_that_cannot_be_sent_leave_the_log_its_time() {
        let start = Instant::now();
        let log = async {
            assert_eq!(start.elapsed(), Duration::from_millis(750));
            pending::<()>().await;
        };
        finish(pending(), log, start, &shutdown(), pending).await.expect_err("it is not written");
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_log_of_a_process_that_did_not_run_at_its_end_is_written() {
        let start = Instant::now();
        advance(Duration::from_secs(10)).await;
        let log = sleep(Duration::from_millis(249));
        finish(pending(), log, start, &shutdown(), pending).await.expect("it is written");
        let unwritten = finish(pending(), pending(), start, &shutdown(), pending).await.expect_err("it is not written");
        assert_eq!(unwritten.to_string(), "the log could not be written to standard output within 1s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_ends_the_wait_for_spans_at_once_and_that_for_the_log_soon() {
        let start = Instant::now();
        let log = async {
            assert_eq!(start.elapsed(), Duration::ZERO);
            pending::<()>().await;
        };
        let unwritten = finish(pending(), log, start, &shutdown(), || ready(())).await.expect_err("it is not written");
        assert!(unwritten.to_string().contains("second signal"), "{unwritten}");
        assert_eq!(start.elapsed(), Duration::from_millis(500));
    }
}
