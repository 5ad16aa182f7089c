//! SIGHUP reloads `log.filter`, `log.requests`, and the files of `http.tls`, which are watched as well.
//!
//! The whole configuration is read again, from the same sources and with the same checks as at the start. If it is
//! invalid, nothing changes. A change of any other key is reported, because it needs a restart. The log says what a
//! reload did, with the names of keys and without their values.

pub(crate) mod certificates;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use animal_store_adapters_http::RequestLogFilter;
use secrecy::{ExposeSecret, SecretString};
use tokio::{signal::unix::Signal, task::spawn_blocking, time::timeout};

use self::certificates::CertificateWatch;
use crate::{
    config::{Config, ConfigError, LogConfig},
    telemetry::{LogFilter, RELOAD_TARGET},
};

/// Timeout for reading the configuration.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings that a reload replaces, and the values in use, by key.
pub(crate) struct Reload {
    pub(crate) filter: LogFilter,
    pub(crate) requests: RequestLogFilter,
    pub(crate) certificates: Option<Arc<CertificateWatch>>,
    pub(crate) values: BTreeMap<&'static str, SecretString>,
}

impl Reload {
    /// Reloads at each signal, until the runtime shuts down. Signals that arrive during a reload cause one more.
    pub(crate) async fn run(
        mut self,
        mut hang_ups: Signal,
        load: impl Fn() -> Result<Config, ConfigError> + Clone + Send + 'static,
    ) {
        while hang_ups.recv().await.is_some() {
            let (load, certificates) = (load.clone(), self.certificates.clone());
            let reload = move || {
                let config = load()?;
                Ok::<_, ConfigError>((config, certificates.is_some_and(|watch| watch.reload())))
            };
            match timeout(LOAD_TIMEOUT, spawn_blocking(reload)).await {
                Ok(Ok(Ok((config, replaced)))) => self.apply(&config, replaced),
                Ok(Ok(Err(error))) => {
                    let reason = error.one_line();
                    tracing::error!(
                        target: RELOAD_TARGET,
                        reason,
                        "SIGHUP: the configuration is invalid, nothing changes"
                    );
                }
                // A file is a pipe without a writer, or the reading panicked.
                Err(_) | Ok(Err(_)) => {
                    tracing::error!(target: RELOAD_TARGET, "SIGHUP: the configuration cannot be read, nothing changes");
                }
            }
        }
    }

    /// `replaced`: whether the certificate was replaced.
    fn apply(&mut self, config: &Config, replaced: bool) {
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let (reloaded, others) = self.changed_keys(&config.values);
        if !reloaded.is_empty() {
            self.filter.replace(&config.log.filter);
            self.requests.set(config.log.requests.get());
            for key in &reloaded {
                self.values.insert(key, config.values[key].clone());
            }
            let keys = reloaded.join(",");
            tracing::info!(target: RELOAD_TARGET, keys, "SIGHUP: the log settings were reloaded");
        }
        if !others.is_empty() {
            let keys = others.join(",");
            tracing::warn!(target: RELOAD_TARGET, keys, "SIGHUP: these keys have changed, which needs a restart");
        } else if reloaded.is_empty() && !replaced {
            tracing::info!(target: RELOAD_TARGET, "SIGHUP: the configuration has not changed");
        }
    }

    /// Returns the keys that have changed: those that a reload applies, and the others.
    fn changed_keys(&self, new: &BTreeMap<&'static str, SecretString>) -> (Vec<&'static str>, Vec<&'static str>) {
        let changed = |key: &&str| self.values[key].expose_secret() != new[key].expose_secret();
        new.keys().copied().filter(changed).partition(|key| LogConfig::RELOADED.contains(key))
    }
}
