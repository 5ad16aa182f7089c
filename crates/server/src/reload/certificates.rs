//! Notices that the files of `http.tls` have changed. Programs that renew certificates replace several files, in any
//! order: they are read when they have been unchanged for one interval. If they cannot be used, the identity in use
//! stays, they are read again in each interval, and each reason is logged once. SIGHUP reads them at once.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use animal_store_adapters_http::{CurrentTlsIdentity, TlsFiles};
use humantime::format_rfc3339_seconds;
use tokio::{task::spawn_blocking, time::sleep};

use crate::{config::TlsConfig, telemetry::RELOAD_TARGET};

/// Interval in which the metadata of the files is compared.
const INTERVAL: Duration = Duration::from_secs(2);

/// The owner of the identity: replaces it when its files change, and at SIGHUP.
pub(crate) struct CertificateWatch {
    files: TlsFiles,
    identity: CurrentTlsIdentity,
    /// Locked while the files are read, so that no older content replaces a newer one.
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Metadata in the last interval.
    seen: Option<FileStates>,
    /// Metadata when the files were read.
    read: Option<FileStates>,
    /// The reason why the files cannot be used. Until it is gone, they are read in each interval.
    problem: Option<String>,
}

/// The metadata of each file that changes with its content, or with the target of a link. `None`: it cannot be read.
type FileStates = [Option<FileState>; 3];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileState {
    fn read(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        let (modified, changed) = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
        Some(Self { device: file.dev(), inode: file.ino(), size: file.size(), modified, changed })
    }
}

impl CertificateWatch {
    pub(crate) fn new(config: &TlsConfig) -> Self {
        let (files, identity) = (config.files.clone(), config.identity.clone());
        Self { files, identity, progress: Mutex::default() }
    }

    /// Compares the files until the runtime shuts down.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let watch = Arc::clone(&self);
            if spawn_blocking(move || watch.compare()).await.is_err() {
                return;
            }
            sleep(INTERVAL).await;
        }
    }

    /// Reads the files at once. Returns whether the identity was replaced.
    pub(super) fn reload(&self) -> bool {
        self.load(&mut self.progress())
    }

    fn compare(&self) {
        let TlsFiles { certificate, private_key, client_authorities } = &self.files;
        let paths = [Some(certificate), Some(private_key), client_authorities.as_ref()];
        let mut progress = self.progress();
        let states = Some(paths.map(|path| path.and_then(|path| FileState::read(path))));
        let is_complete = progress.seen == states;
        progress.seen = states;
        if !is_complete || (progress.read == states && progress.problem.is_none()) {
            return;
        }
        progress.read = states;
        // SIGHUP warns with the configuration.
        if self.load(&mut progress) {
            let identity = self.identity.get();
            if identity.remaining().is_none() {
                let expires = format_rfc3339_seconds(identity.expires());
                tracing::warn!(target: RELOAD_TARGET, %expires, "the TLS certificate has expired: clients refuse it");
            }
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self, progress: &mut Progress) -> bool {
        match self.files.load() {
            Ok(new) => {
                let expires = format_rfc3339_seconds(new.expires());
                let replaced = self.identity.replace(new);
                let had_problem = progress.problem.take().is_some();
                if replaced {
                    tracing::info!(target: RELOAD_TARGET, %expires, "the TLS certificate was replaced");
                } else if had_problem {
                    tracing::info!(target: RELOAD_TARGET, "the files of http.tls can be used again");
                }
                replaced
            }
            Err(error) => {
                let reason = error.to_string();
                if progress.problem.as_ref() != Some(&reason) {
                    tracing::error!(
                        target: RELOAD_TARGET,
                        reason,
                        "the files of http.tls cannot be used, the certificate in use stays"
                    );
                }
                progress.problem = Some(reason);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use animal_store_test_servers::Certificates;

    use super::*;

    #[test]
    fn files_that_could_not_be_used_are_read_again_although_they_have_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let certificates = Certificates::make(folder.path());
        let (certificate, private_key) = (certificates.server, certificates.server_key);
        let files = TlsFiles { certificate, private_key, client_authorities: None };
        let identity = CurrentTlsIdentity::new(files.load().unwrap());
        let watch = CertificateWatch::new(&TlsConfig { files, identity });
        watch.compare();
        watch.compare();
        // As after an error of the file system.
        watch.progress().problem = Some("cannot be read".to_owned());
        watch.compare();
        assert_eq!(watch.progress().problem, None);
    }
}
