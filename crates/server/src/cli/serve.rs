use super::{file_limit::raise_file_limit, quickstart};
use crate::{application::Application, config::Config, shutdown::Signals, telemetry};

/// Runs the service until a signal ends it.
pub(super) fn run(mut config: Config) -> anyhow::Result<()> {
    let _log = telemetry::start(&config.log)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let limits = &config.http.limits;
    raise_file_limit(limits.max_connections + config.storage.connections(limits.workers));
    let generated_token = quickstart::generate_key(&mut config.keys)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let signals = Signals::listen()?;
        let application = tokio::select! {
            application = Application::build(config) => application?,
            () = signals.reach(1) => return Ok(()),
        };
        let management = application.management_address().map(|address| address.to_string());
        tracing::info!(address = %application.address(), management, "listening");
        if let Some(token) = generated_token {
            quickstart::print(&token, application.address())?;
        }
        application.run_until(signals.reach(1), signals.reach(2)).await
    })
}
