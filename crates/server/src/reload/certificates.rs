//! Notices that the files of `http.tls` have changed. Programs that renew certificates replace several files, in any
//! order: what was read counts when the next reading finds the same. If the files cannot be used, the identity in use
//! stays, and each reason is logged once.

use std::{future::pending, sync::Arc, time::Duration};

use animal_store_adapters_http::{CurrentTlsIdentity, TlsFiles, TlsIdentity};
use humantime::format_rfc3339_seconds;
use tokio::{task::spawn_blocking, time::sleep};

use crate::{config::TlsConfig, telemetry::RELOAD_TARGET};

/// Interval in which the files are read.
const INTERVAL: Duration = Duration::from_secs(2);

/// The owner of the identity in use.
pub(crate) struct Certificates {
    files: TlsFiles,
    identity: CurrentTlsIdentity,
    last: Result<Arc<TlsIdentity>, String>,
    /// The reason why the files cannot be used.
    problem: Option<String>,
}

impl Certificates {
    pub(crate) fn new(config: &TlsConfig) -> Self {
        let (files, identity) = (config.files.clone(), config.identity.clone());
        Self { last: Ok(identity.get()), files, identity, problem: None }
    }

    /// Reads the files once. If it is cancelled, the thread that reads is left behind.
    pub(super) async fn read(&mut self) {
        sleep(INTERVAL).await;
        let files = self.files.clone();
        match spawn_blocking(move || files.load()).await {
            Ok(read) => self.add(read.map(Arc::new).map_err(|error| error.to_string())),
            // The runtime is shutting down, and this future with it.
            Err(_) => pending().await,
        }
    }

    fn add(&mut self, read: Result<Arc<TlsIdentity>, String>) {
        match (&self.last, &read) {
            (Ok(last), Ok(identity)) if last.is_same(identity) => {
                let replaced = self.replace(identity);
                if replaced && identity.remaining().is_none() {
                    let expires = format_rfc3339_seconds(identity.expires());
                    let effect = "the TLS certificate has expired: clients refuse it";
                    tracing::warn!(target: RELOAD_TARGET, %expires, "{effect}");
                }
            }
            (Err(last), Err(reason)) if last == reason && self.problem.as_ref() != Some(reason) => {
                tracing::error!(
                    target: RELOAD_TARGET,
                    reason,
                    "the files of http.tls cannot be used, the certificate in use stays"
                );
                self.problem = Some(reason.clone());
            }
            _ => {}
        }
        self.last = read;
    }

    /// Uses what SIGHUP has read and checked, unless it is from other files, which need a restart. Returns whether it
    /// differs from what was in use.
    pub(super) fn reload(&mut self, config: &TlsConfig) -> bool {
        config.files == self.files && self.replace(&config.identity.get())
    }

    fn replace(&mut self, identity: &Arc<TlsIdentity>) -> bool {
        let had_problem = self.problem.take().is_some();
        let replaced = self.identity.replace(Arc::clone(identity));
        if replaced {
            let expires = format_rfc3339_seconds(identity.expires());
            tracing::info!(target: RELOAD_TARGET, %expires, "the TLS certificate was replaced");
        } else if had_problem {
            tracing::info!(target: RELOAD_TARGET, "the files of http.tls can be used again");
        }
        replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_counts_when_the_next_reading_finds_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let load = || {
            let made = animal_store_test_servers::Certificates::make(folder.path());
            let files = TlsFiles { certificate: made.server, private_key: made.server_key, client_authorities: None };
            (Arc::new(files.load().unwrap()), files)
        };
        let (first, files) = load();
        let identity = CurrentTlsIdentity::new(files.load().unwrap());
        let mut certificates = Certificates::new(&TlsConfig { files, identity: identity.clone() });
        let second = load().0;
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
            let state = (!identity.get().is_same(&first), certificates.problem.is_some());
            assert_eq!(state, (is_second, has_problem));
        }
    }
}
