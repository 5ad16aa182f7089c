//! SIGHUP reloads some settings. The files of `http.tls` are watched by `certificates`.
//!
//! The whole configuration is read again, from the same sources and with the same checks as at the start. If it is
//! invalid, nothing changes. A change of any other setting is reported, because it needs a restart. The log says what a
//! reload did, with the names of settings and without their values.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_http::ApiServer;
use animal_store_settings::{Changes, SettingsError, Values};
use animal_store_telemetry::LogFilter;
use tokio::{task::spawn_blocking, time::timeout};

use crate::{
    config::{Config, RELOAD_TARGET},
    shutdown::Signals,
};

/// Timeout for reading the configuration. What is read later has no effect.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// What a reload changes, and the values in use.
pub(crate) struct Reload {
    pub(crate) api: Arc<ApiServer>,
    pub(crate) filter: LogFilter,
    pub(crate) values: Values,
}

impl Reload {
    /// Reloads at each request, until the runtime shuts down. Requests that arrive during a reload cause one more.
    pub(crate) async fn run(
        mut self,
        signals: Signals,
        load: impl Fn() -> Result<Config, SettingsError> + Clone + Send + 'static,
    ) {
        loop {
            signals.reload().await;
            match read(load.clone()).await {
                Ok(config) => self.apply(&config),
                Err(reason) => {
                    tracing::error!(target: RELOAD_TARGET, reason, "SIGHUP: the configuration is invalid, nothing changes");
                }
            }
        }
    }

    fn apply(&mut self, config: &Config) {
        for warning in config.values.warnings() {
            tracing::warn!("{warning}");
        }
        let Changes { reloaded, others } = self.values.reload(&config.values);
        if !reloaded.is_empty() {
            self.filter.replace(&config.log.settings);
            self.api.reload(&config.http);
            let keys = reloaded.join(",");
            tracing::info!(target: RELOAD_TARGET, keys, "SIGHUP: these settings were reloaded");
        }
        if !others.is_empty() {
            let keys = others.join(",");
            tracing::warn!(target: RELOAD_TARGET, keys, "SIGHUP: these settings have changed, which needs a restart");
        } else if reloaded.is_empty() {
            tracing::info!(target: RELOAD_TARGET, "SIGHUP: no setting has changed");
        }
    }
}

/// Reads the configuration, or returns why it cannot be used.
async fn read(
    load: impl FnOnce() -> Result<Config, SettingsError> + Send + 'static,
) -> Result<Config, String> {
    match timeout(LOAD_TIMEOUT, spawn_blocking(load)).await {
        Ok(Ok(read)) => read.map_err(|error| error.one_line()),
        // A file is a pipe without a writer, or the reading panicked.
        Err(_) | Ok(Err(_)) => Err("it cannot be read".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::time::advance;

    use super::*;
    use crate::config::Sources;

    #[tokio::test(start_paused = true)]
    async fn a_configuration_that_is_read_too_late_is_not_used() {
        let (sender, receiver) = mpsc::channel::<()>();
        let late = move || {
            receiver.recv().unwrap();
            Config::load(&Sources::default())
        };
        let (config, ()) = tokio::join!(biased; read(late), advance(2 * LOAD_TIMEOUT));
        assert_eq!(config.unwrap_err(), "it cannot be read");
        sender.send(()).unwrap();
    }
}
