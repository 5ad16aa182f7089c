use anyhow::{anyhow, bail};
use prometheus_client::metrics::counter::Counter;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until},
};

use super::{InvalidConfig, file_limit::reserve_files, options::Options, quickstart::Quickstart};
use crate::{
    application::Application,
    config::{Config, ConfigError, ShutdownConfig},
    listeners::Listeners,
    reload::Reload,
    shutdown::Signals,
    telemetry::{self, Traces},
    wiring::SharedFile,
};

/// Runs the service until a signal ends it. `load` reads the configuration, again at each SIGHUP. `options` are
/// those of the program in commands to paste.
pub(super) fn run(
    load: impl Fn() -> Result<Config, ConfigError> + Clone + Send + 'static,
    options: &Options,
) -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    let result = runtime.block_on(serve(load, options));
    // Threads that are blocked, such as in a read of a file or a lookup of a name, are left behind.
    runtime.shutdown_background();
    result
}

async fn serve(
    load: impl Fn() -> Result<Config, ConfigError> + Clone + Send + 'static,
    options: &Options,
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
    let reload = Reload { filter, requests: config.log.requests.clone(), values: config.values.clone() };
    tokio::spawn(reload.run(hang_ups, load));
    let (shutdown_timeout, requests_timeout) = (config.shutdown.timeout, config.shutdown.requests_timeout());
    let result = start_and_run(config, options, log.dropped_lines(), &signals).await;
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
    dropped_log_lines: Counter,
    signals: &Signals,
) -> anyhow::Result<()> {
    let limits = &mut config.http.limits;
    reserve_files(limits, config.storage.connections(limits.workers))?;
    let mut quickstart = Quickstart::default();
    let start = async {
        // Before the adapters, which can take seconds to start: an address in use is reported at once.
        let listeners = Listeners::bind(&config)?;
        let mut file = SharedFile::default();
        // Before the directory of API keys: the printed requests work at once.
        quickstart.prepare(&mut config, &mut file, options).await?;
        let application = Application::start(config, listeners, file, dropped_log_lines).await?;
        quickstart.print(application.address()).await?;
        // The end of the start: from this event on, a signal shuts the application down, which closes the file.
        let management = application.management_address().map(|address| address.to_string());
        tracing::info!(address = %application.address(), management, "listening");
        anyhow::Ok(application)
    };
    let started = tokio::select! {
        biased;
        _ = signals.first() => Ok(None),
        application = start => application.map(Some),
    };
    let Ok(Some(application)) = started else {
        quickstart.withdraw().await;
        return started.map(drop);
    };
    application.run_until(signals.first(), signals.second()).await
}
