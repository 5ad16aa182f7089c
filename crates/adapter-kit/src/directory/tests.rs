use std::{
    io::{self, PipeReader},
    sync::Mutex,
};

use animal_store_app::test_support::api_key;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{JoinHandle, yield_now},
    time::advance,
};
use tracing::subscriber::{DefaultGuard, set_default};

use super::*;

type Check = Result<Option<KeyDelta>, String>;

const INTERVAL: Duration = Source::INTERVAL;

/// The clock of the store, which always shows the same time.
const NOW: SystemTime = SystemTime::UNIX_EPOCH;

/// A store whose checks have the results that a test sends.
struct Source {
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

struct Test {
    directory: Arc<ApiKeySnapshot>,
    checks: UnboundedSender<Check>,
    known: Arc<Mutex<Vec<Option<i64>>>>,
    registry: Registry,
}

impl Test {
    fn start() -> Self {
        let (checks, results) = unbounded_channel();
        let known = Arc::default();
        let source = Source {
            results,
            known: Arc::clone(&known),
        };
        let mut registry = Registry::default();
        let (directory, task) =
            ApiKeySnapshot::new(source, Duration::from_millis(500), &mut registry);
        tokio::spawn(task);
        Self {
            directory: Arc::new(directory),
            checks,
            known,
            registry,
        }
    }

    /// Asks for a check, ends it with this result, and waits until the task has seen that.
    async fn check(&self, result: Check) {
        self.directory.demand.ask();
        self.checks.send(result).unwrap();
        for _ in 0..3 {
            yield_now().await;
        }
    }

    async fn find(&self, number: u8) -> Result<Option<Arc<ApiKey>>, StoreFailure> {
        self.directory.find(digest(number)).await
    }

    async fn id(&self, number: u8) -> Option<String> {
        let found = self.find(number).await.unwrap();
        found.map(|key| key.id.to_string())
    }

    /// Begins a lookup of the token 1.
    fn lookup(&self) -> JoinHandle<Option<Arc<ApiKey>>> {
        let directory = Arc::clone(&self.directory);
        tokio::spawn(async move { directory.find(digest(1)).await.unwrap() })
    }

    /// The number of checks that have begun.
    fn begun(&self) -> usize {
        self.known.lock().unwrap().len()
    }

    fn metric(&self, sample: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(sample));
        let value = value.unwrap_or_else(|| panic!("{text}"));
        value.trim().parse().unwrap()
    }
}

fn digest(number: u8) -> ApiKeyDigest {
    ApiKeyDigest([number; 32])
}

fn key(id: &str, tokens: &[u8]) -> StoredKey {
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

fn invalid(id: &str, tokens: &[u8]) -> StoredKey {
    StoredKey {
        key: Err("the label is malformed".to_owned()),
        ..key(id, tokens)
    }
}

/// A key with one token, which ends at this time of the store.
fn ending(id: &str, token: u8, end: SystemTime) -> StoredKey {
    StoredKey {
        tokens: vec![StoredToken {
            digest: digest(token),
            expires: Some(end),
        }],
        ..key(id, &[])
    }
}

/// Sends the log of this thread to a pipe.
fn log() -> (PipeReader, DefaultGuard) {
    let (reader, writer) = io::pipe().unwrap();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_writer(Mutex::new(writer));
    (reader, set_default(subscriber.finish()))
}

/// The first version has all keys.
fn delta(version: i64, keys: impl Into<Vec<StoredKey>>) -> KeyDelta {
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

#[tokio::test(start_paused = true)]
async fn only_the_changed_keys_are_replaced() {
    let test = Test::start();
    let first = [key("a", &[1, 2]), key("b", &[3])];
    test.check(Ok(Some(delta(1, first)))).await;
    advance(INTERVAL).await;
    // A token may move to another key, and a key may be revoked.
    let second = [key("c", &[2]), key("a", &[1]), key("b", &[])];
    test.check(Ok(Some(delta(2, second)))).await;
    let ids = [test.id(1).await, test.id(2).await, test.id(3).await];
    assert_eq!(ids, [Some("a".into()), Some("c".into()), None]);
    advance(INTERVAL).await;
    test.check(Ok(None)).await;
    advance(INTERVAL).await;
    test.check(Ok(Some(delta(1, [key("d", &[3])])))).await;
    let ids = [test.id(1).await, test.id(3).await];
    assert_eq!(ids, [None, Some("d".into())]);
    let known = [None, Some(1), Some(2), Some(2)];
    assert_eq!(*test.known.lock().unwrap(), known);
}

/// Without those of the first read. A restart of the store changes no key, and another store has other keys.
#[tokio::test(start_paused = true)]
async fn differences_are_logged_once_for_each_key() {
    let (reader, guard) = log();
    let test = Test::start();
    let first = [key("a", &[1]), key("b", &[2]), ending("e", 5, NOW)];
    test.check(Ok(Some(delta(1, first)))).await;
    advance(INTERVAL).await;
    let invalid = || invalid("c", &[3, 4]);
    // A key may be added and revoked between two checks.
    let changed = [key("b", &[]), invalid(), key("x", &[])];
    test.check(Ok(Some(delta(2, changed)))).await;
    advance(INTERVAL).await;
    // A token that expired may be gone.
    test.check(Ok(Some(delta(1, [key("a", &[1]), invalid()]))))
        .await;
    advance(INTERVAL).await;
    test.check(Ok(Some(delta(1, [invalid(), key("d", &[1])]))))
        .await;
    drop(guard);
    let log = io::read_to_string(reader).unwrap();
    let line = |id: &str, tokens: u8| {
        format!(
            r#" INFO audit: API key change seen api_key="{id}" api_key_label="label of {id}" scopes="read,write" tokens={tokens}"#
        )
    };
    let unreadable = r#" INFO audit: API key change seen api_key="c" api_key_label="unreadable" scopes="" tokens=2"#;
    let expected = [
        line("b", 0),
        unreadable.to_owned(),
        line("d", 1),
        line("a", 0),
    ];
    assert_eq!(log.lines().collect::<Vec<_>>(), expected);
}

/// The log of all of them would take longer than the keys are trusted.
#[tokio::test(start_paused = true)]
async fn of_very_many_differences_the_last_ones_are_counted() {
    let (reader, guard) = log();
    let log = std::thread::spawn(|| io::read_to_string(reader).unwrap());
    for count in [LOGGED, LOGGED + 2] {
        let keys: Vec<_> = (0..count).map(|n| key(&n.to_string(), &[1])).collect();
        let differences = keys.iter().map(|key| Difference { key, tokens: 1 });
        log_differences(&differences.collect::<Vec<_>>());
    }
    drop(guard);
    let log = log.join().unwrap();
    assert_eq!(log.lines().count(), 2 * LOGGED + 1);
    let last = "further API key changes seen records=2\n";
    assert!(log.ends_with(last), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_lookup_trusts_no_check_that_began_too_long_ago() {
    let test = Test::start();
    yield_now().await;
    // The check takes a while.
    advance(Duration::from_millis(60)).await;
    test.check(Ok(Some(delta(1, [key("a", &[1])])))).await;
    advance(Duration::from_millis(39)).await;
    assert_eq!(test.id(1).await.as_deref(), Some("a"));
    advance(Duration::from_millis(1)).await;
    assert!(matches!(test.find(1).await, Err(StoreFailure::Timeout)));
    let failures = "keys_lookup_failures_total{reason=\"timeout\"}";
    assert_eq!(test.metric(failures), 1);
    Readiness::check(&*test.directory).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_check_lookups_fail_as_soon_as_the_trust_ends_and_until_one_succeeds() {
    let test = Test::start();
    test.check(Ok(Some(delta(1, [key("a", &[1])])))).await;
    advance(INTERVAL).await;
    test.check(Err("no such table".to_owned())).await;
    assert_eq!(test.id(1).await.as_deref(), Some("a"));
    advance(INTERVAL).await;
    let Err(StoreFailure::Unavailable(cause)) = test.find(1).await else {
        panic!("not trusted")
    };
    assert_eq!(cause.to_string(), "no such table");
    test.check(Ok(None)).await;
    assert_eq!(test.id(1).await.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_key_fails_the_lookups_of_its_tokens_only_and_an_expired_token_has_none() {
    let test = Test::start();
    let keys = [invalid("a", &[1]), key("b", &[2]), ending("c", 3, NOW)];
    test.check(Ok(Some(delta(1, keys)))).await;
    assert!(matches!(test.find(1).await, Err(StoreFailure::Corrupt(_))));
    let ids = [test.id(2).await, test.id(3).await];
    assert_eq!(ids, [Some("b".into()), None]);
    let failures = "keys_lookup_failures_total{reason=\"corrupt\"}";
    assert_eq!(test.metric(failures), 1);
}

/// The clock of this machine shows another year.
#[tokio::test(start_paused = true)]
async fn a_token_expires_by_the_clock_of_the_store() {
    let test = Test::start();
    let ends = ending("a", 1, NOW + INTERVAL);
    test.check(Ok(Some(delta(1, [ends])))).await;
    advance(INTERVAL * 9 / 10).await;
    assert_eq!(test.id(1).await.as_deref(), Some("a"));
    advance(INTERVAL / 10).await;
    assert_eq!(test.id(1).await, None);
}

#[tokio::test(start_paused = true)]
async fn without_lookups_nothing_is_checked_and_the_next_lookup_waits_for_one_check() {
    let test = Test::start();
    let first = delta(1, [key("a", &[1])]);
    test.checks.send(Ok(Some(first))).unwrap();
    sleep(Duration::from_hours(1)).await;
    assert_eq!(test.begun(), 1);
    let lookup = test.lookup();
    sleep(INTERVAL).await;
    assert!(test.begun() == 2 && !lookup.is_finished());
    // The key was revoked in this hour.
    let second = delta(2, [key("a", &[])]);
    test.checks.send(Ok(Some(second))).unwrap();
    assert_eq!(lookup.await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn the_first_check_after_a_time_without_lookups_is_repeated_if_it_fails() {
    let test = Test::start();
    let failed = "the connection ended".to_owned();
    let first = delta(1, [key("a", &[1])]);
    test.checks.send(Ok(Some(first))).unwrap();
    sleep(INTERVAL * 2).await;
    test.checks.send(Err(failed)).unwrap();
    test.checks.send(Ok(None)).unwrap();
    assert_eq!(test.id(1).await.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_lookup_asks_again_after_a_check_that_took_longer_than_the_trust() {
    let test = Test::start();
    let lookup = test.lookup();
    sleep(Source::TRUST).await;
    let first = delta(1, [key("a", &[1])]);
    test.checks.send(Ok(Some(first))).unwrap();
    sleep(INTERVAL).await;
    assert!(!lookup.is_finished());
    test.checks.send(Ok(None)).unwrap();
    assert!(lookup.await.unwrap().is_some());
}

/// Without pauses, instances would open connections to a store that restarts as fast as they can.
#[tokio::test(start_paused = true)]
async fn pauses_between_failed_checks_grow_and_are_short_again_after_a_success() {
    let test = Test::start();
    for _ in 0..40 {
        test.checks.send(Err("refused".to_owned())).unwrap();
    }
    sleep(Duration::from_secs(10)).await;
    let checks = test.begun();
    assert!((14..=28).contains(&checks), "{checks} in ten seconds");
    sleep(Duration::from_mins(1)).await;
    test.check(Ok(None)).await;
    sleep(INTERVAL).await;
    let before = test.begun();
    test.check(Err("refused".to_owned())).await;
    sleep(Duration::from_millis(21)).await;
    assert_eq!(test.begun(), before + 1);
}
