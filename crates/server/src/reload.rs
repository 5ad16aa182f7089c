//! SIGHUP reloads `log.filter`, `log.requests`, and the files of `http.tls`, which are watched as well.
//!
//! The whole configuration is read again, from the same sources and with the same checks as at the start. If it is
//! invalid, nothing changes. A change of any other key is reported, because it needs a restart. The log says what a
//! reload did, with the names of keys and without their values.

mod certificates;

use std::{collections::BTreeMap, future::pending, sync::Arc, time::Duration};

use animal_store_adapters_http::RequestLogFilter;
use secrecy::{ExposeSecret, SecretString};
use tokio::{sync::Notify, task::spawn_blocking, time::timeout};

use self::certificates::Certificates;
use crate::{
    config::{Config, ConfigError, LogConfig},
    telemetry::{LogFilter, RELOAD_TARGET},
};

/// Timeout for reading the configuration. What is read later has no effect.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings that a reload replaces, and the values in use, by key.
pub(crate) struct Reload {
    filter: LogFilter,
    requests: RequestLogFilter,
    certificates: Option<Certificates>,
    values: BTreeMap<&'static str, SecretString>,
}

impl Reload {
    pub(crate) fn new(config: &Config, filter: LogFilter) -> Self {
        let (requests, values) = (config.log.requests.clone(), config.values.clone());
        Self { filter, requests, certificates: config.http.tls.as_ref().map(Certificates::new), values }
    }

    /// Reloads at each request, and watches the files of `http.tls`, until the runtime shuts down. Requests that arrive
    /// during a reload cause one more.
    pub(crate) async fn run(
        mut self,
        requested: Arc<Notify>,
        load: impl Fn() -> Result<Config, ConfigError> + Clone + Send + 'static,
    ) {
        loop {
            let certificates = async {
                match &mut self.certificates {
                    Some(certificates) => certificates.read().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = requested.notified() => self.reload(load.clone()).await,
                () = certificates => {}
            }
        }
    }

    async fn reload(&mut self, load: impl FnOnce() -> Result<Config, ConfigError> + Send + 'static) {
        match timeout(LOAD_TIMEOUT, spawn_blocking(load)).await {
            Ok(Ok(Ok(config))) => self.apply(&config),
            Ok(Ok(Err(error))) => {
                let reason = error.one_line();
                tracing::error!(target: RELOAD_TARGET, reason, "SIGHUP: the configuration is invalid, nothing changes");
            }
            // A file is a pipe without a writer, or the reading panicked.
            Err(_) | Ok(Err(_)) => {
                tracing::error!(target: RELOAD_TARGET, "SIGHUP: the configuration cannot be read, nothing changes");
            }
        }
    }

    fn apply(&mut self, config: &Config) {
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let replaced = match (&mut self.certificates, &config.http.tls) {
            (Some(certificates), Some(tls)) => certificates.reload(tls),
            _ => false,
        };
        let changed = |key: &&str| self.values[key].expose_secret() != config.values[key].expose_secret();
        let changed = config.values.keys().copied().filter(changed);
        let (reloaded, others): (Vec<_>, Vec<_>) = changed.partition(|key| LogConfig::RELOADED.contains(key));
        if !reloaded.is_empty() {
            self.filter.replace(&config.log.filter);
            self.requests.change_to(&config.log.requests);
            self.values.extend(reloaded.iter().map(|&key| (key, config.values[key].clone())));
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
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use animal_store_test_servers::Certificates;
    use tokio::time::advance;

    use super::*;
    use crate::config::Sources;

    #[tokio::test(start_paused = true)]
    async fn a_configuration_that_is_read_too_late_replaces_no_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let certificates = Certificates::make(folder.path());
        let flags = [("http.tls.cert_file", &certificates.server), ("http.tls.key_file", &certificates.server_key)];
        let flags = flags.map(|(key, path)| (key.to_owned(), path.display().to_string()));
        let load = move || Config::load(&Sources { flags: flags.to_vec(), ..Sources::default() });
        let config = load().unwrap();
        let identity = config.http.tls.as_ref().unwrap().identity.clone();
        let first = identity.get();
        let mut reload = Reload::new(&config, LogFilter::new(&config.log.filter).0);

        Certificates::make(folder.path());
        let (sender, receiver) = mpsc::channel::<()>();
        let (ended, end) = tokio::sync::oneshot::channel();
        let late = move || {
            receiver.recv().unwrap();
            let config = load();
            ended.send(()).unwrap();
            config
        };
        tokio::join!(biased; reload.reload(late), advance(2 * LOAD_TIMEOUT));
        sender.send(()).unwrap();
        end.await.unwrap();
        assert!(Arc::ptr_eq(&first, &identity.get()));
    }
}
