use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use animal_store_adapter_kit::queue::{Pending, Taker};
use animal_store_app::ports::{AddPetError, AddedPet};
use animal_store_domain::Pet;
use diesel::{QueryResult, SqliteConnection, connection::SimpleConnection};
use tokio::{
    select,
    time::{Instant, interval, sleep, sleep_until},
};

use super::{
    Create,
    batch::{Added, Batch},
    sweep,
};
use crate::{
    SqliteFile,
    access::{AccessError, Session, begin, commit},
    metrics::Metrics,
};

/// Greatest number of creates in a transaction.
const MAX_BATCH: usize = 1000;

/// Longest pause between two sweeps.
const MAX_SWEEP_PAUSE: Duration = Duration::from_mins(1);

/// Time between two checks that the file is in place.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A transaction that holds the write lock for longer is followed by a pause. Another process tries to take the lock
/// each millisecond, so that an import and a server take turns.
const LONG_TRANSACTION: Duration = Duration::from_millis(10);
const PAUSE: Duration = Duration::from_millis(3);

/// The task that writes, with its own connection.
pub(super) struct Writer {
    session: Session,
    taker: Taker<Create>,
    metrics: Arc<Metrics>,
    retention: Duration,
}

impl Writer {
    pub(super) fn new(file: &SqliteFile, taker: Taker<Create>, metrics: &Arc<Metrics>, retention: Duration) -> Self {
        Self { session: Session::new(file), taker, metrics: Arc::clone(metrics), retention }
    }

    /// A panic of a step fails its creates with an unknown outcome, and closes the connection.
    pub(super) async fn run(mut self) {
        let sweeps = self.session.file.is_writable();
        let mut next_sweep = Instant::now() + sweep_pause(self.retention);
        let mut checks = interval(CHECK_INTERVAL);
        loop {
            select! {
                is_open = self.taker.ready() => if is_open { self.write().await } else { return },
                () = sleep_until(next_sweep), if sweeps => {
                    let is_complete = self.sweep().await;
                    // More expired records come after the creates that wait.
                    next_sweep = Instant::now() + if is_complete { sweep_pause(self.retention) } else { PAUSE };
                }
                // It logs and counts by itself.
                _ = checks.tick() => drop(self.session.run(|session| session.file.check_in_place()).await),
            }
        }
    }

    async fn write(&mut self) {
        let (taker, metrics, retention) = (self.taker.clone(), Arc::clone(&self.metrics), self.retention);
        let written = self.session.run(move |session| write(session, &taker, &metrics, retention)).await;
        if written.is_ok_and(|duration| duration > LONG_TRANSACTION) {
            sleep(PAUSE).await;
        }
    }

    /// Returns `false` if there may be more expired records.
    async fn sweep(&mut self) -> bool {
        let swept = self.session.run(|session| {
            let file = session.file.clone();
            file.check_in_place().ok().map(|()| session.execute(|connection| sweep::sweep(&file, connection)))
        });
        let records = match swept.await.map_err(AccessError::from) {
            Ok(Some(Ok(records))) => records,
            // That was logged.
            Ok(None) => return true,
            Ok(Some(Err(error))) | Err(error) => {
                let (file, reason) = (self.session.file.path().display(), error.to_string());
                tracing::warn!(%file, reason, "idempotency keys were not swept");
                return true;
            }
        };
        self.metrics.swept_keys.inc_by(records as u64);
        if records > 0 {
            tracing::debug!(records, "idempotency keys were swept");
        }
        records < sweep::BATCH_SIZE
    }
}

/// Writes the creates that wait, in one transaction. They are taken after the transaction began: a create whose timeout
/// passes while another process writes is still in the queue. Returns the duration of the transaction.
fn write(session: &mut Session, taker: &Taker<Create>, metrics: &Metrics, retention: Duration) -> Duration {
    let file = session.file.clone();
    let (mut start, mut batch) = (Instant::now(), Vec::new());
    let results = session.execute(|connection| {
        let began = begin(connection, file.timeout());
        (start, batch) = (Instant::now(), taker.take(MAX_BATCH));
        began?;
        store(&file, connection, &mut batch, metrics, retention)
    });
    match results {
        Ok(results) => {
            for (pending, result) in batch.into_iter().zip(results) {
                let added = |(id, replayed), pet| AddedPet { pet: Pet::new(id, pet), replayed };
                pending.respond(|Create(request)| result.map(|result| added(result, request.pet)));
            }
        }
        Err(error) => {
            // If no connection can be opened, none was taken yet.
            batch.append(&mut taker.take(MAX_BATCH - batch.len()));
            for pending in batch {
                pending.respond(|_| Err(error.failure(file.path()).into()));
            }
        }
    }
    start.elapsed()
}

/// Adds pets and commits.
fn store(
    file: &SqliteFile,
    connection: &mut SqliteConnection,
    batch: &mut [Pending<Create>],
    metrics: &Metrics,
    retention: Duration,
) -> Result<Vec<Result<Added, AddPetError>>, AccessError> {
    if batch.is_empty() {
        connection.batch_execute("ROLLBACK")?;
        return Ok(Vec::new());
    }
    let size = batch.len();
    let mut inserts = Batch { file, connection, now: SystemTime::now(), retention };
    let mut add = |pending: &mut Pending<Create>| {
        pending.sent(size, &metrics.creates);
        inserts.add(&pending.request.0)
    };
    let results = batch.iter_mut().map(&mut add).collect::<QueryResult<_>>()?;
    let start = Instant::now();
    let committed = commit(file, connection);
    metrics.batch_size.observe(u32::try_from(size).unwrap_or(u32::MAX).into());
    metrics.commit_duration.observe(start.elapsed().as_secs_f64());
    committed?;
    metrics.commits.inc();
    Ok(results)
}

fn sweep_pause(retention: Duration) -> Duration {
    MAX_SWEEP_PAUSE.min(retention / 4)
}

#[cfg(test)]
mod tests {
    use animal_store_adapter_kit::queue::queue;
    use prometheus_client::registry::Registry;
    use tempfile::TempDir;

    use super::*;
    use crate::values::number;

    #[tokio::test]
    async fn while_the_file_is_moved_a_sweep_deletes_nothing() {
        let folder = TempDir::new().unwrap();
        let (path, moved) = (folder.path().join("pets.db"), folder.path().join("moved.db"));
        let file = SqliteFile::create_or_migrate(&path, Duration::from_secs(20)).unwrap();
        let mut connection = file.connect().unwrap();
        connection.batch_execute("INSERT INTO idempotency_keys VALUES ('old', x'01', x'00', 1, 1)").unwrap();
        let metrics = Arc::new(Metrics::new(&mut Registry::default()));
        let (_sender, taker) = queue(1, metrics.creates.clone());
        let mut writer = Writer::new(&file, taker, &metrics, Duration::from_hours(24));
        for (from, to, rows) in [(&path, &moved, 1), (&moved, &path, 0)] {
            std::fs::rename(from, to).unwrap();
            assert!(writer.sweep().await, "the next one comes later");
            assert_eq!(number(&mut connection, "SELECT count(*) FROM idempotency_keys").unwrap(), rows);
        }
    }

    #[test]
    fn sweeps_come_four_times_in_a_retention_and_once_a_minute_at_least() {
        assert_eq!(sweep_pause(Duration::from_secs(20)), Duration::from_secs(5));
        assert_eq!(sweep_pause(Duration::from_hours(24)), Duration::from_mins(1));
    }
}
