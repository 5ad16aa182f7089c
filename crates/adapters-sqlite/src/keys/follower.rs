//! The thread that follows the file.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant, SystemTime},
};

use diesel::prelude::*;
use tokio::sync::watch;

use super::{
    checked::{Checked, Tokens},
    error::KeyError,
    metrics::DirectoryMetrics,
    tokens::read_valid,
};
use crate::{SqliteFile, file::FileConnection, schema::tables::api_key_state, time::milliseconds};

/// Time between the beginnings of two checks. A check that is late by less than the difference to the time of trust
/// delays no lookup.
const INTERVAL: Duration = Duration::from_millis(50);

/// Reads the tokens when their version differs from the one that was read.
pub(super) struct Follower {
    file: SqliteFile,
    /// Replaced after each failure.
    connection: Option<FileConnection>,
    version: Option<i64>,
    checked: watch::Sender<Checked>,
    metrics: DirectoryMetrics,
}

impl Follower {
    pub(super) fn new(
        file: SqliteFile,
        connection: FileConnection,
        checked: watch::Sender<Checked>,
        metrics: DirectoryMetrics,
    ) -> Self {
        Self { file, connection: Some(connection), version: None, checked, metrics }
    }

    /// Checks the file until the sender of `stop` is dropped.
    pub(super) fn run(mut self, stop: &Receiver<()>) {
        loop {
            let next = Instant::now() + INTERVAL;
            // A panic must not end the thread.
            if catch_unwind(AssertUnwindSafe(|| self.check())).is_err() {
                self.reset();
            }
            let pause = next.saturating_duration_since(Instant::now());
            if stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// Publishes the tokens before they are trusted for longer: both are one value.
    pub(super) fn check(&mut self) {
        let began = Instant::now();
        match self.read() {
            Ok(tokens) => {
                if let Some(tokens) = &tokens {
                    self.metrics.reloads.inc();
                    self.metrics.tokens.set(i64::try_from(tokens.len()).unwrap_or(i64::MAX));
                }
                let mut failed = None;
                self.checked.send_modify(|checked| {
                    failed = mem::take(&mut checked.failure);
                    checked.succeeded(began, tokens);
                });
                if failed.is_some() {
                    tracing::info!(file = %self.file.path().display(), "API keys can be looked up again");
                }
            }
            Err(error) => {
                self.reset();
                let reason = error.to_string();
                let mut is_new = false;
                self.checked.send_modify(|checked| {
                    is_new = checked.failure.as_ref() != Some(&reason);
                    checked.failure = Some(reason.clone());
                });
                if is_new {
                    let file = self.file.path().display();
                    tracing::error!(%file, reason, "API keys cannot be read: requests get 503");
                }
            }
        }
    }

    /// The next check opens a connection and reads the tokens.
    fn reset(&mut self) {
        self.connection = None;
        self.version = None;
    }

    /// Returns the tokens if their version has changed.
    fn read(&mut self) -> Result<Option<Tokens>, KeyError> {
        self.file.check_in_place()?;
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(self.file.connect()?),
        };
        let known = self.version;
        let read = connection.transaction::<_, diesel::result::Error, _>(|connection| {
            let version: i64 = api_key_state::table.select(api_key_state::version).first(connection)?;
            if known == Some(version) {
                return Ok((version, None));
            }
            Ok((version, Some(read_valid(connection, milliseconds(SystemTime::now()))?)))
        });
        let (version, rows) = read?;
        self.version = Some(version);
        Ok(rows.map(|rows| Tokens::from_rows(&rows)))
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use diesel::connection::SimpleConnection;
    use prometheus_client::registry::Registry;
    use tempfile::TempDir;

    use super::*;
    use crate::problems::Problems;

    fn follower() -> (Follower, watch::Receiver<Checked>, TempDir) {
        let folder = TempDir::new().unwrap();
        let file = SqliteFile::create_or_migrate(&folder.path().join("keys.db"), Duration::from_secs(20)).unwrap();
        let (sender, checked) = watch::channel(Checked::new());
        let metrics = DirectoryMetrics::register(&mut Registry::default());
        let connection = file.connect().unwrap();
        (Follower::new(file, connection, sender, metrics), checked, folder)
    }

    #[tokio::test]
    async fn a_check_begins_50_ms_after_the_one_before() {
        let (follower, mut checked, _folder) = follower();
        let start = Instant::now();
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || follower.run(&stopped));
        for _ in 0..3 {
            checked.changed().await.unwrap();
        }
        assert!(start.elapsed() >= Duration::from_millis(100), "{:?}", start.elapsed());
        drop(stop);
        thread.join().unwrap();
    }

    #[test]
    fn a_reason_for_failed_checks_is_logged_once() {
        let (mut follower, _checked, _folder) = follower();
        let mut connection = follower.file.connect().unwrap();
        let (problems, _guard) = Problems::start();
        connection.batch_execute("ALTER TABLE api_key_state RENAME TO hidden").unwrap();
        (0..3).for_each(|_| follower.check());
        assert_eq!(problems.count(), 1);
        connection.batch_execute("DROP TABLE hidden; CREATE TABLE api_key_state (id)").unwrap();
        (0..3).for_each(|_| follower.check());
        assert_eq!(problems.count(), 2);
    }
}
