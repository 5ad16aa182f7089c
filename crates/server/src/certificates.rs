//! Watches the files of `http.tls` while the API is served.

use std::{sync::Arc, time::Duration};

use animal_store_http1::{CurrentTlsIdentity, TlsIdentity};
use humantime::format_rfc3339_seconds;
use tokio::{task::spawn_blocking, time::sleep};

use crate::config::RELOAD_TARGET;

/// Interval in which the files are read.
const INTERVAL: Duration = Duration::from_secs(2);

/// Replaces the identity after its files have changed, until the runtime shuts down.
pub(crate) async fn watch(identity: CurrentTlsIdentity) {
    let mut certificates = Certificates::new(identity.clone());
    loop {
        sleep(INTERVAL).await;
        let used = identity.get();
        // It fails if the runtime is shutting down.
        if let Ok(read) = spawn_blocking(move || used.files.load()).await {
            certificates.add(read.map(Arc::new).map_err(|error| error.to_string()));
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
        Self {
            last: Ok(identity.get()),
            applied: Ok(identity.get()),
            identity,
        }
    }

    fn add(&mut self, read: Reading) {
        let is_settled = read == self.last;
        self.last.clone_from(&read);
        if !is_settled || read == self.applied {
            return;
        }
        match &read {
            Ok(identity) if self.identity.replace(Arc::clone(identity)) => log_replaced(identity),
            Ok(_) => {
                tracing::info!(target: RELOAD_TARGET, "the files of http.tls can be used again");
            }
            Err(reason) => {
                let effect = "the files of http.tls cannot be used, the certificate in use stays";
                tracing::error!(target: RELOAD_TARGET, reason, "{effect}");
            }
        }
        self.applied = read;
    }
}

fn log_replaced(identity: &TlsIdentity) {
    let expires = format_rfc3339_seconds(identity.expires());
    tracing::info!(target: RELOAD_TARGET, %expires, "the TLS certificate was replaced");
    if identity.remaining().is_none() {
        tracing::warn!(target: RELOAD_TARGET, %expires, "the TLS certificate has expired: clients refuse it");
    }
    if identity.has_expired_authority() {
        tracing::warn!(target: RELOAD_TARGET, "an authority of http.tls.client_ca_file has expired");
    }
}

#[cfg(test)]
mod tests {
    use animal_store_http1::TlsFiles;
    use animal_store_test_servers::Certificates as Made;

    use super::*;

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
