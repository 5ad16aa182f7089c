use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use animal_store_app::{ports::ApiKeyUse, test_support::api_key_id};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing_subscriber::fmt::MakeWriter;

use super::*;

const MINUTE: Duration = Duration::from_mins(1);

/// A store that can be unavailable, and the ids of the keys in each write.
#[derive(Clone, Default)]
struct FakeStore {
    unavailable: Arc<AtomicBool>,
    writes: Arc<Mutex<Vec<Vec<String>>>>,
}

impl UseStore for FakeStore {
    fn address(&self) -> String {
        "fake".to_owned()
    }

    async fn write(&self, uses: &PendingUses, minute: i64) -> Result<(), String> {
        assert_eq!(minute % 60, 0, "a whole minute");
        let age = milliseconds(SystemTime::now()) / 1000 - minute;
        assert!((0..3600).contains(&age), "in seconds since 1970: {minute}");
        if self.unavailable.load(Ordering::Relaxed) {
            return Err("unavailable".to_owned());
        }
        let mut ids: Vec<_> = uses
            .iter()
            .flat_map(|(_, times)| times.keys().map(ToString::to_string))
            .collect();
        ids.sort();
        self.writes.lock().unwrap().push(ids);
        Ok(())
    }
}

impl FakeStore {
    /// Starts a record for at most two keys.
    fn start(&self) -> (ApiKeyUseRecord, JoinHandle<()>) {
        ApiKeyUseRecord::start(self.clone(), 2, MINUTE, &mut Registry::default())
    }

    fn writes(&self) -> Vec<Vec<String>> {
        self.writes.lock().unwrap().clone()
    }
}

fn note(record: &ApiKeyUseRecord, id: &str) {
    record.note(&api_key_id(id), ApiKeyUse::Request);
}

/// The log of this thread.
struct Log(&'static Mutex<Vec<u8>>);

impl Log {
    fn start() -> (Self, DefaultGuard) {
        let log: &Mutex<_> = Box::leak(Box::default());
        let subscriber = tracing_subscriber::fmt().with_writer(move || log.make_writer());
        (Self(log), set_default(subscriber.finish()))
    }

    fn count(&self, message: &str) -> usize {
        String::from_utf8_lossy(&self.0.lock().unwrap())
            .matches(message)
            .count()
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_uses_are_written_after_the_last_clone_is_dropped() {
    let store = FakeStore::default();
    let (record, end) = store.start();
    let records = [record.clone(), record];
    tokio::time::sleep(3 * MINUTE).await;
    assert!(
        store.writes().is_empty(),
        "nothing is written without a use"
    );
    for (record, id) in records.into_iter().zip(["a", "b"]) {
        assert!(!end.is_finished());
        note(&record, id);
    }
    end.await.unwrap();
    assert_eq!(store.writes(), [["a", "b"]]);
}

#[tokio::test(start_paused = true)]
async fn uses_during_an_outage_are_written_after_it_and_each_outage_is_logged_once() {
    let ((log, _guard), store) = (Log::start(), FakeStore::default());
    let (record, _end) = store.start();
    for outage in 1..=2 {
        store.unavailable.store(true, Ordering::Relaxed);
        note(&record, "a");
        tokio::time::sleep(3 * MINUTE).await;
        note(&record, "b");
        tokio::time::sleep(3 * MINUTE).await;
        assert_eq!(
            (log.count("cannot be written"), log.count("written again")),
            (outage, outage - 1)
        );

        store.unavailable.store(false, Ordering::Relaxed);
        tokio::time::sleep(3 * MINUTE).await;
        assert_eq!(store.writes(), vec![["a", "b"]; outage]);
        assert_eq!(
            (log.count("cannot be written"), log.count("written again")),
            (outage, outage)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn keys_beyond_the_bound_are_not_recorded_which_is_logged() {
    let ((log, _guard), store) = (Log::start(), FakeStore::default());
    let (record, end) = store.start();
    for id in ["a", "b", "a", "c", "b"] {
        note(&record, id);
    }
    tokio::time::sleep(3 * MINUTE).await;
    drop(record);
    end.await.unwrap();
    assert_eq!(store.writes(), [["a", "b"]]);
    assert_eq!(log.count("were not recorded"), 1);
}
