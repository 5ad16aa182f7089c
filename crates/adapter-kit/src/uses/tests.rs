use std::sync::Mutex;

use prometheus_client::encoding::text::encode;
use tokio::time::sleep;

use super::*;

/// A store that fails while it is told to.
#[derive(Clone, Default)]
struct Store {
    fails: Arc<Mutex<bool>>,
    /// The number of keys of each write.
    writes: Arc<Mutex<Vec<usize>>>,
}

#[async_trait]
impl UseStore for Store {
    fn address(&self) -> String {
        "store".to_owned()
    }

    async fn write(&self, uses: &PendingUses, _now: u64) -> Result<(), String> {
        if *self.fails.lock().unwrap() {
            return Err("not available".to_owned());
        }
        self.writes.lock().unwrap().push(uses.iter().map(|(_, times)| times.len()).sum());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn uses_are_written_once_in_an_interval_after_a_failure_and_at_the_end() {
    let (store, mut registry) = (Store::default(), Registry::default());
    let minute = Duration::from_mins(1);
    let (record, end) = ApiKeyUseRecord::start(store.clone(), 10, minute, &mut registry);
    let [one, other] = [record.recorder(), record.recorder()];
    drop(record);
    // Each check is in the middle between two writes.
    sleep(minute / 2).await;
    let tick = async || sleep(minute).await;
    one.note(&ApiKeyId::new("a"), ApiKeyUse::Request);
    *store.fails.lock().unwrap() = true;
    tick().await;
    tick().await;
    other.note(&ApiKeyId::new("b"), ApiKeyUse::Request);
    *store.fails.lock().unwrap() = false;
    tick().await;
    tick().await;
    assert_eq!(*store.writes.lock().unwrap(), [2], "without uses, nothing is written");

    drop(other);
    one.note(&ApiKeyId::new("a"), ApiKeyUse::GetPet);
    assert!(!end.is_finished());
    drop(one);
    end.await.unwrap();
    assert_eq!(*store.writes.lock().unwrap(), [2, 1]);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for (result, count) in [("written", 2), ("failed", 2)] {
        assert!(text.contains(&format!("keys_use_writes_total{{result=\"{result}\"}} {count}\n")), "{text}");
    }
}
