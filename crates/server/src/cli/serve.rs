use anyhow::{anyhow, bail};
use tokio::{
    runtime::Runtime,
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until},
};

use super::{file_limit::raise_file_limit, quickstart};
use crate::{
    application::Application,
    config::{Config, ShutdownConfig},
    shutdown::Signals,
    telemetry,
};

/// Runs the service until a signal ends it.
pub(super) fn run(load: impl FnOnce() -> anyhow::Result<Config> + Send + 'static) -> anyhow::Result<()> {
    let runtime = Runtime::new()?;
    let result = runtime.block_on(serve(load));
    // Threads that are blocked, such as in a read of a file or a lookup of a name, are left behind.
    runtime.shutdown_background();
    result
}

async fn serve(load: impl FnOnce() -> anyhow::Result<Config> + Send + 'static) -> anyhow::Result<()> {
    // Before anything is read or started. Earlier, in the first milliseconds, a signal kills the process.
    let signals = Signals::listen()?;
    let config = tokio::select! {
        biased;
        _ = signals.first() => return Ok(()),
        config = spawn_blocking(load) => config??,
    };
    let log = telemetry::start(&config.log)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let shutdown_timeout = config.shutdown.timeout;
    let result = start_and_run(config, &signals).await;
    let end = signals.request().map_or_else(Instant::now, |request| request.arrived_at) + shutdown_timeout;
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

async fn start_and_run(mut config: Config, signals: &Signals) -> anyhow::Result<()> {
    let limits = &config.http.limits;
    raise_file_limit(limits.sockets() + config.storage.connections(limits.workers));
    let start = async {
        let generated_token = quickstart::generate_key(&mut config.keys)?;
        let application = Application::build(config).await?;
        let management = application.management_address().map(|address| address.to_string());
        tracing::info!(address = %application.address(), management, "listening");
        if let Some(token) = generated_token {
            quickstart::print(token, application.address()).await?;
        }
        anyhow::Ok(application)
    };
    let application = tokio::select! {
        biased;
        _ = signals.first() => return Ok(()),
        application = start => application?,
    };
    application.run_until(signals.first(), signals.second()).await
}
