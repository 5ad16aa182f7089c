//! SIGHUP reloads some settings, and the files of `http.tls`, which are watched as well.
//!
//! The whole configuration is read again, from the same sources and with the same checks as at the start. If it is
//! invalid, nothing changes. A change of any other key is reported, because it needs a restart. The log says what a
//! reload did, with the names of keys and without their values.

use std::{collections::BTreeMap, future::pending, sync::Arc, time::Duration};

use animal_store_adapters_http::{ApiSettings, CurrentTlsIdentity, TlsIdentity};
use animal_store_settings::SettingsError;
use animal_store_telemetry::LogFilter;
use humantime::format_rfc3339_seconds;
use secrecy::{ExposeSecret, SecretString};
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

use crate::{
    config::{Config, RELOAD_TARGET, SCHEMA},
    shutdown::Signals,
};

/// Timeout for reading the configuration. What is read later has no effect.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval in which the files of `http.tls` are read.
const INTERVAL: Duration = Duration::from_secs(2);

/// Settings that a reload replaces, and the values in use, by key.
pub(crate) struct Reload {
    filter: LogFilter,
    http: ApiSettings,
    certificates: Option<Certificates>,
    values: BTreeMap<&'static str, SecretString>,
}

impl Reload {
    pub(crate) fn new(config: &Config, filter: LogFilter) -> Self {
        let certificates = config.http.tls.clone().map(Certificates::new);
        Self {
            filter,
            http: config.http.clone(),
            certificates,
            values: config.values.clone(),
        }
    }

    /// Reloads at each request, and watches the files of `http.tls`, until the runtime shuts down. Requests that arrive
    /// during a reload cause one more.
    pub(crate) async fn run(
        mut self,
        signals: Signals,
        load: impl Fn() -> Result<Config, SettingsError> + Clone + Send + 'static,
    ) {
        loop {
            tokio::select! {
                biased;
                () = signals.reload() => self.reload(load.clone()).await,
                () = Certificates::watch(&mut self.certificates) => {}
            }
        }
    }

    async fn reload(
        &mut self,
        load: impl FnOnce() -> Result<Config, SettingsError> + Send + 'static,
    ) {
        let reason = match timeout(LOAD_TIMEOUT, spawn_blocking(load)).await {
            Ok(Ok(Ok(config))) => return self.apply(&config),
            Ok(Ok(Err(error))) => error.one_line(),
            // A file is a pipe without a writer, or the reading panicked.
            Err(_) | Ok(Err(_)) => "it cannot be read".to_owned(),
        };
        tracing::error!(target: RELOAD_TARGET, reason, "SIGHUP: the configuration is invalid, nothing changes");
    }

    fn apply(&mut self, config: &Config) {
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let read = config.http.tls.as_ref().map(CurrentTlsIdentity::get);
        // Other files need a restart.
        let replaced = match (&mut self.certificates, read) {
            (Some(used), Some(read)) if read.files == used.identity.get().files => {
                used.apply(Ok(read))
            }
            _ => false,
        };
        let mut reloaded = Vec::new();
        let mut others = Vec::new();
        for setting in SCHEMA.settings() {
            let name = setting.name;
            if self.values[name].expose_secret() == config.values[name].expose_secret() {
                continue;
            }
            if setting.reloads {
                reloaded.push(name);
            } else {
                others.push(name);
            }
        }
        if !reloaded.is_empty() {
            self.filter.replace(&config.log.settings);
            self.http.change_to(&config.http);
            self.values.extend(
                reloaded
                    .iter()
                    .map(|&key| (key, config.values[key].clone())),
            );
            let keys = reloaded.join(",");
            tracing::info!(target: RELOAD_TARGET, keys, "SIGHUP: these keys were reloaded");
        }
        if !others.is_empty() {
            let keys = others.join(",");
            tracing::warn!(target: RELOAD_TARGET, keys, "SIGHUP: these keys have changed, which needs a restart");
        } else if reloaded.is_empty() && !replaced {
            tracing::info!(target: RELOAD_TARGET, "SIGHUP: the configuration has not changed");
        }
    }
}

/// What the files of `http.tls` contain, or the reason why they cannot be used.
type Reading = Result<Arc<TlsIdentity>, String>;

/// Notices that the files of `http.tls` have changed. Programs that renew certificates replace several files, in any
/// order: what was read counts when the next reading finds the same. If the files cannot be used, the identity in use
/// stays, and each reason is logged once.
struct Certificates {
    identity: CurrentTlsIdentity,
    last: Reading,
    /// The last reading that counted.
    applied: Reading,
}

impl Certificates {
    fn new(identity: CurrentTlsIdentity) -> Self {
        let (last, applied) = (Ok(identity.get()), Ok(identity.get()));
        Self {
            identity,
            last,
            applied,
        }
    }

    /// Reads the files once. If it is cancelled, the thread that reads is left behind.
    async fn watch(certificates: &mut Option<Self>) {
        let Some(certificates) = certificates else {
            return pending().await;
        };
        sleep(INTERVAL).await;
        let identity = certificates.identity.get();
        // It fails if the runtime is shutting down.
        if let Ok(read) = spawn_blocking(move || identity.files.load()).await {
            certificates.add(read.map(Arc::new).map_err(|error| error.to_string()));
        }
    }

    fn add(&mut self, read: Reading) {
        if read == self.last && self.apply(read.clone()) {
            let identity = self.identity.get();
            if identity.remaining().is_none() {
                let expires = format_rfc3339_seconds(identity.expires());
                tracing::warn!(target: RELOAD_TARGET, %expires, "the TLS certificate has expired: clients refuse it");
            }
            if identity.has_expired_authority() {
                tracing::warn!(target: RELOAD_TARGET, "an authority of http.tls.client_ca_file has expired");
            }
        }
        self.last = read;
    }

    /// Returns whether another identity is in use now.
    fn apply(&mut self, read: Reading) -> bool {
        if read == self.applied {
            return false;
        }
        let replaced = read
            .as_ref()
            .is_ok_and(|identity| self.identity.replace(Arc::clone(identity)));
        match &read {
            Ok(identity) if replaced => {
                let expires = format_rfc3339_seconds(identity.expires());
                tracing::info!(target: RELOAD_TARGET, %expires, "the TLS certificate was replaced");
            }
            Ok(_) => {
                tracing::info!(target: RELOAD_TARGET, "the files of http.tls can be used again");
            }
            Err(reason) => {
                let effect = "the files of http.tls cannot be used, the certificate in use stays";
                tracing::error!(target: RELOAD_TARGET, reason, "{effect}");
            }
        }
        self.applied = read;
        replaced
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use animal_store_adapters_http::TlsFiles;
    use animal_store_test_servers::Certificates as Made;
    use tokio::time::advance;

    use super::*;
    use crate::config::Sources;

    #[tokio::test(start_paused = true)]
    async fn a_configuration_that_is_read_too_late_replaces_no_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let certificates = Made::make(folder.path());
        let flags = [
            ("http.tls.cert_file", &certificates.server),
            ("http.tls.key_file", &certificates.server_key),
        ];
        let flags = flags.map(|(key, path)| (key.to_owned(), path.display().to_string()));
        let load = move || {
            Config::load(&Sources {
                flags: flags.to_vec(),
                ..Sources::default()
            })
        };
        let config = load().unwrap();
        let identity = config.http.tls.clone().unwrap();
        let first = identity.get();
        let mut reload = Reload::new(&config, LogFilter::unused());

        Made::make(folder.path());
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

    #[test]
    fn what_was_read_counts_when_the_next_reading_finds_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let load = || {
            let made = Made::make(folder.path());
            let files = TlsFiles {
                certificate: made.server,
                private_key: made.server_key,
                client_authorities: None,
            };
            Arc::new(files.load().unwrap())
        };
        let first = load();
        let identity = CurrentTlsIdentity::new(first.files.load().unwrap());
        let mut certificates = Certificates::new(identity.clone());
        let second = load();
        let broken = || Err("cannot be read".to_owned());
        for (read, is_second, has_problem) in [
            (Ok(second.clone()), false, false),
            (broken(), false, false),
            (broken(), false, true),
            (Ok(second.clone()), false, true),
            (Ok(second), true, false),
            (broken(), true, false),
            (Ok(first.clone()), true, false),
            (Ok(first.clone()), false, false),
        ] {
            certificates.add(read);
            let state = (identity.get() != first, certificates.applied.is_err());
            assert_eq!(state, (is_second, has_problem));
        }
    }
}
