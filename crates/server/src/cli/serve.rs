use std::sync::Arc;

use anyhow::bail;
use prometheus_client::metrics::counter::Counter;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until},
};

use super::{InvalidConfig, file_limit::reserve_files, missing_key, options::Options, quickstart::Quickstart};
use crate::{
    application::Application,
    config::{Config, ConfigError, ShutdownConfig},
    listeners::Listeners,
    reload::{Reload, certificates::CertificateWatch},
    service_manager::ServiceManager,
    shutdown::Signals,
    telemetry::{self, Traces},
    version,
    wiring::{FileUse, SharedFile},
};

/// Runs the service until a signal ends it. `load` reads the configuration, again at each SIGHUP. `options` are
/// those of the program in commands to paste.
pub(super) fn run(
    load: impl Fn() -> Result<Config, ConfigError> + Clone + Send + 'static,
    options: &Options,
) -> anyhow::Result<()> {
    let manager = ServiceManager::from_environment()?;
    let runtime = Runtime::new()?;
    let result = runtime.block_on(serve(load, options, manager));
    // Threads that are blocked, such as in a read of a file or a lookup of a name, are left behind.
    runtime.shutdown_background();
    result
}

async fn serve(
    load: impl Fn() -> Result<Config, ConfigError> + Clone + Send + 'static,
    options: &Options,
    manager: ServiceManager,
) -> anyhow::Result<()> {
    // Before anything is read or started. Earlier, in the first milliseconds, a signal kills the process.
    let signals = Signals::listen()?;
    let hang_ups = signal(SignalKind::hangup())?;
    let config = tokio::select! {
        biased;
        _ = signals.first() => return Ok(()),
        config = spawn_blocking(load.clone()) => config?.map_err(InvalidConfig::from)?,
    };
    let traces = Traces::start(&config)?;
    let (log, filter) = telemetry::start(&config.log, traces.layers())?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let certificates = config.http.tls.as_ref().map(|tls| Arc::new(CertificateWatch::new(tls)));
    if let Some(watch) = &certificates {
        tokio::spawn(Arc::clone(watch).run());
    }
    let reload = Reload { filter, requests: config.log.requests.clone(), certificates, values: config.values.clone() };
    tokio::spawn(reload.run(hang_ups, load));
    let shutdown = config.shutdown;
    let result = start_and_run(config, options, manager, log.dropped_lines(), &signals).await;
    let end_requested_at = signals.request().map_or_else(Instant::now, |request| request.arrived_at);
    finish_traces(traces.finish(), end_requested_at, &shutdown, signals.second()).await;
    match (result, finish_log(log.finish(), end_requested_at, &shutdown, signals.second()).await) {
        (result, Ok(())) => result,
        (Ok(()), unwritten) => unwritten,
        (Err(error), Err(unwritten)) => bail!("{error:#}; {unwritten}"),
    }
}

/// Waits until the last spans are sent, at most until the time that is reserved for the log.
async fn finish_traces(
    finish: impl Future<Output = ()>,
    end_requested_at: Instant,
    shutdown: &ShutdownConfig,
    second_signal: impl Future<Output = ()>,
) {
    tokio::select! {
        biased;
        () = finish => {}
        () = sleep_until(end_requested_at + shutdown.requests_timeout()) => {}
        () = second_signal => {}
    }
}

/// Waits until the last lines of the log are written, at most until `shutdown.timeout` has passed. If the process did
/// not run at that time, the log still has the time that is reserved for it.
async fn finish_log(
    finish: impl Future<Output = ()>,
    end_requested_at: Instant,
    shutdown: &ShutdownConfig,
    second_signal: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let (timeout, reserved) = (shutdown.timeout, shutdown.log_timeout());
    let end = (end_requested_at + timeout).max(Instant::now() + reserved);
    tokio::select! {
        biased;
        () = finish => Ok(()),
        () = sleep_until(end) => bail!("the log could not be written to standard output within {timeout:?}"),
        () = async { second_signal.await; sleep(ShutdownConfig::LOG_TIMEOUT).await } =>
            bail!("a second signal arrived, and the log could not be written to standard output"),
    }
}

async fn start_and_run(
    mut config: Config,
    options: &Options,
    manager: ServiceManager,
    dropped_log_lines: Counter,
    signals: &Signals,
) -> anyhow::Result<()> {
    let limits = &mut config.http.limits;
    reserve_files(limits, config.storage.connections(limits.workers))?;
    let is_managed = manager.is_present();
    let ServiceManager { socket, notifier } = manager;
    let shutdown_timeout = config.shutdown.timeout;
    let mut quickstart = Quickstart::default();
    let start = async {
        // Before the adapters, which can take seconds to start: an address in use is reported at once.
        let listeners = Listeners::bind(&config, socket)?;
        let inherited = listeners.api.is_inherited().then_some(true);
        if config.http.is_unencrypted(listeners.address) {
            tracing::warn!(
                address = %listeners.address,
                "other machines can connect without TLS: set http.tls.cert_file, or put a proxy in front and name it \
                 in http.trusted_proxies"
            );
        }
        let mut file = SharedFile::new(FileUse::Serve);
        // Before the directory of API keys: the printed requests work at once.
        if is_managed {
            missing_key::warn(&config, &mut file, options).await?;
        } else {
            quickstart.prepare(&mut config, &mut file, options).await?;
        }
        let application = Application::start(config, listeners, file, dropped_log_lines).await?;
        quickstart.print(application.address()).await?;
        // The end of the start: from this event on, a signal shuts the application down, which closes the file.
        let management = application.management_address().map(|address| address.to_string());
        let (address, version) = (application.address(), version::BUILD);
        tracing::info!(%address, management, inherited, version, "listening");
        anyhow::Ok(application)
    };
    let stop = async {
        let request = signals.first().await;
        notifier.stopping(shutdown_timeout);
        request
    };
    let started = tokio::select! {
        biased;
        _ = signals.first() => {
            notifier.stopping(shutdown_timeout);
            Ok(None)
        }
        application = start => application.map(Some),
    };
    let Ok(Some(application)) = started else {
        quickstart.withdraw().await;
        return started.map(drop);
    };
    notifier.ready(&format!("listening on {}", application.address()));
    application.run_until(stop, signals.second()).await
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
        finish_traces(pending(), start, &shutdown(), pending()).await;
        assert_eq!(start.elapsed(), Duration::from_millis(750));
        finish_log(pending(), start, &shutdown(), pending()).await.expect_err("it is not written");
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_log_of_a_process_that_did_not_run_at_its_end_is_written() {
        let start = Instant::now();
        advance(Duration::from_secs(10)).await;
        finish_traces(pending(), start, &shutdown(), pending()).await;
        finish_log(sleep(Duration::from_millis(249)), start, &shutdown(), pending()).await.expect("it is written");
        let unwritten = finish_log(pending(), start, &shutdown(), pending()).await.expect_err("it is not written");
        assert_eq!(unwritten.to_string(), "the log could not be written to standard output within 1s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_signal_ends_the_wait_for_spans_at_once_and_that_for_the_log_soon() {
        let start = Instant::now();
        finish_traces(pending(), start, &shutdown(), ready(())).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        let unwritten = finish_log(pending(), start, &shutdown(), ready(())).await.expect_err("it is not written");
        assert!(unwritten.to_string().contains("second signal"), "{unwritten}");
        assert_eq!(start.elapsed(), Duration::from_millis(500));
    }
}
