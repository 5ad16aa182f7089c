//! A directory over a store whose checks end as a test says, and its log.

use std::{
    io::{self, PipeReader},
    sync::Mutex,
};

use animal_store_app::test_support::api_key;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{JoinHandle, yield_now},
};
use tracing::subscriber::{DefaultGuard, set_default};

use super::super::*;

type Check = Result<Option<KeyDelta>, String>;

pub(super) const INTERVAL: Duration = Source::INTERVAL;

/// The clock of the store, which always shows the same time.
pub(super) const NOW: SystemTime = SystemTime::UNIX_EPOCH;

/// A store whose checks have the results that a test sends.
pub(super) struct Source {
    results: UnboundedReceiver<Check>,
    known: Arc<Mutex<Vec<Option<i64>>>>,
}

impl KeySource for Source {
    const INTERVAL: Duration = Duration::from_millis(50);
    const TRUST: Duration = Duration::from_millis(100);

    fn address(&self) -> String {
        "store".to_owned()
    }

    async fn check(&mut self, known: Option<&KeyState>) -> Result<KeyCheck, String> {
        let known = known.map(|known| known.version);
        self.known.lock().unwrap().push(known);
        let delta = self
            .results
            .recv()
            .await
            .expect("the test has the sender")?;
        Ok(KeyCheck { now: NOW, delta })
    }
}

pub(super) struct Test {
    pub(super) directory: Arc<ApiKeySnapshot>,
    checks: UnboundedSender<Check>,
    pub(super) known: Arc<Mutex<Vec<Option<i64>>>>,
    registry: Registry,
    pub(super) task: JoinHandle<()>,
}

impl Test {
    pub(super) fn start() -> Self {
        let (checks, results) = unbounded_channel();
        let known = Arc::default();
        let source = Source {
            results,
            known: Arc::clone(&known),
        };
        let mut registry = Registry::default();
        let (directory, task) =
            ApiKeySnapshot::new(source, Duration::from_millis(500), &mut registry);
        Self {
            directory: Arc::new(directory),
            checks,
            known,
            registry,
            task: tokio::spawn(task),
        }
    }

    /// A check that reads this version with these keys.
    pub(super) async fn read(&self, version: i64, keys: impl Into<Vec<StoredKey>>) {
        self.check(Ok(Some(delta(version, keys)))).await;
    }

    /// Ends the check that is under way, or the next one, with this result.
    pub(super) fn send(&self, result: Check) {
        self.checks.send(result).unwrap();
    }

    /// Asks for a check, ends it with this result, and waits until the task has seen that.
    pub(super) async fn check(&self, result: Check) {
        self.directory.demand.ask();
        self.send(result);
        for _ in 0..3 {
            yield_now().await;
        }
    }

    pub(super) async fn find(&self, number: u8) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        self.directory.find(digest(number)).await
    }

    pub(super) async fn id(&self, number: u8) -> Option<String> {
        let found = self.find(number).await.unwrap();
        found.map(|key| key.id.to_string())
    }

    /// Begins a lookup of the token 1.
    pub(super) fn lookup(&self) -> JoinHandle<Option<Arc<ApiKey>>> {
        let directory = Arc::clone(&self.directory);
        tokio::spawn(async move { directory.find(digest(1)).await.unwrap() })
    }

    /// The number of checks that have begun.
    pub(super) fn begun(&self) -> usize {
        self.known.lock().unwrap().len()
    }

    pub(super) fn metric(&self, sample: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(sample));
        let value = value.unwrap_or_else(|| panic!("{text}"));
        value.trim().parse().unwrap()
    }
}

pub(super) fn digest(number: u8) -> ApiKeyDigest {
    ApiKeyDigest([number; 32])
}

pub(super) fn key(id: &str, tokens: &[u8]) -> StoredKey {
    let tokens = tokens.iter().map(|number| StoredToken {
        digest: digest(*number),
        expires: None,
    });
    StoredKey {
        id: id.to_owned(),
        key: Ok(Arc::new(api_key(id))),
        tokens: tokens.collect(),
    }
}

pub(super) fn invalid(id: &str, tokens: &[u8]) -> StoredKey {
    StoredKey {
        key: Err("the label is malformed".to_owned()),
        ..key(id, tokens)
    }
}

/// A key with one token, which ends at this time of the store.
pub(super) fn ending(id: &str, token: u8, end: SystemTime) -> StoredKey {
    StoredKey {
        tokens: vec![StoredToken {
            digest: digest(token),
            expires: Some(end),
        }],
        ..key(id, &[])
    }
}

/// Sends the log of this thread to a pipe.
pub(super) fn log() -> (PipeReader, DefaultGuard) {
    let (reader, writer) = io::pipe().unwrap();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_writer(Mutex::new(writer));
    (reader, set_default(subscriber.finish()))
}

/// The first version has all keys.
pub(super) fn delta(version: i64, keys: impl Into<Vec<StoredKey>>) -> KeyDelta {
    let state = KeyState {
        version,
        mark: Vec::new(),
        counts: KeyCounts::default(),
    };
    KeyDelta {
        state,
        keys: keys.into(),
        is_complete: version == 1,
    }
}
