use std::sync::Arc;

use anyhow::{anyhow, bail};
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
    service_manager::{ServiceManager, watchdog},
    shutdown::Signals,
    telemetry::{self, Traces},
    version,
    wiring::SharedFile,
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
        config = spawn_blocking(load.clone()) => config?.map_err(|error| InvalidConfig(error.to_string()))?,
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
    tokio::spawn(reload.run(hang_ups, manager.notifier.clone(), load));
    let (shutdown_timeout, requests_timeout) = (config.shutdown.timeout, config.shutdown.requests_timeout());
    let result = start_and_run(config, options, manager, log.dropped_lines(), &signals).await;
    let end_requested_at = signals.request().map_or_else(Instant::now, |request| request.arrived_at);
    tokio::select! {
        biased;
        () = traces.finish() => {}
        () = sleep_until(end_requested_at + requests_timeout) => {}
        () = signals.second() => {}
    }
    let end = end_requested_at + shutdown_timeout;
    let unwritten = tokio::select! {
        biased;
        () = log.finish() => return result,
        () = sleep_until(end) => anyhow!("the log could not be written to standard output within {shutdown_timeout:?}"),
        () = async { signals.second().await; sleep(ShutdownConfig::LOG_TIMEOUT).await } =>
            anyhow!("a second signal arrived, and the log could not be written to standard output"),
    };
    match result {
        Ok(()) => Err(unwritten),
        Err(error) => bail!("{error:#}; {unwritten}"),
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
    let (is_managed, notifier) = (manager.is_present(), manager.notifier.clone());
    let shutdown_timeout = config.shutdown.timeout;
    let mut quickstart = Quickstart::default();
    let start = async {
        // Before the adapters, which can take seconds to start: an address in use is reported at once.
        let listeners = Listeners::bind(&config, manager.socket)?;
        let inherited = listeners.api.is_inherited().then_some(true);
        if config.http.is_unencrypted(&listeners.address) {
            tracing::warn!(
                address = %listeners.address,
                "other machines can connect without TLS: set http.tls.cert_file, or put a proxy in front and name it \
                 in http.trusted_proxies"
            );
        }
        let mut file = SharedFile::default();
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
    tokio::spawn(watchdog::notify_periodically(notifier.clone(), application.workers()));
    application.run_until(stop, signals.second()).await
}
