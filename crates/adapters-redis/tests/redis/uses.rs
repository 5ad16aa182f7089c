//! The record of uses: when it is written, and what it costs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use animal_store_adapters_redis::RedisSettings;
use animal_store_app::{
    ApiKeyId,
    ports::{ApiKeyStore, ApiKeyUse, ApiKeyUses},
};
use animal_store_test_servers::RedisServer;
use prometheus_client::registry::Registry;
use tracing::{
    Event, Level, Metadata, Subscriber,
    span::{self, Id},
    subscriber::DefaultGuard,
};

use crate::{
    requests::{Accepted, becomes, wait_until},
    setup::{Keys, Proxied, calls, frequent_writes, is_cached, long_timeouts, metric},
};

/// Counts the warnings of the current thread.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicU64>);

impl Warnings {
    fn start() -> (Self, DefaultGuard) {
        let warnings = Self::default();
        (warnings.clone(), tracing::subscriber::set_default(warnings))
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

const REQUESTS: &str = "shop:v1:uses:request";

fn writes(metrics: &Registry, result: &str) -> u64 {
    metric(metrics, &format!("use_writes_total{{result=\"{result}\"}}")).parse().expect("a whole number")
}

/// Notes a request of these keys, and waits until the writer has ended.
async fn note_and_end(keys: &Keys, ids: &[&str]) {
    let (uses, writer_end) = keys.measured_uses(&mut Registry::default());
    let recorder = uses.recorder();
    for id in ids {
        recorder.note(&ApiKeyId::new(id), ApiKeyUse::Request);
    }
    drop((uses, recorder));
    writer_end.await.expect("the writer does not panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_uses_are_written_after_the_last_recorder_is_dropped() {
    let server = RedisServer::start();
    let keys = Keys::at(&server.url(), long_timeouts());
    let (uses, writer_end) = keys.measured_uses(&mut Registry::default());
    let recorders = [uses.recorder(), uses.recorder()];
    drop(uses);
    for (recorder, id) in recorders.into_iter().zip(["a", "b"]) {
        assert!(!writer_end.is_finished());
        recorder.note(&ApiKeyId::new(id), ApiKeyUse::Request);
    }
    writer_end.await.expect("the writer does not panic");
    assert_eq!(server.command(&["ZRANGE", REQUESTS, "0", "-1"]), "a\nb");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_without_a_use() {
    let server = RedisServer::start();
    note_and_end(&Keys::at(&server.url(), long_timeouts()), &[]).await;
    assert_eq!((calls(&server, "zadd"), calls(&server, "hello")), (0, 0), "it did not connect");
}

/// The clocks of instances differ.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_moves_no_time_backwards_and_no_beginning() {
    let server = RedisServer::start();
    let keys = Keys::at(&server.url(), long_timeouts());
    let (early, late) = (keys.add("early", "token-a").await, keys.add("late", "token-b").await);
    let in_an_hour = SystemTime::now() + Duration::from_hours(1);
    let seconds = in_an_hour.duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    server.command(&["ZADD", REQUESTS, "60", "early", &seconds.to_string(), "late"]);
    server.command(&["ZADD", "shop:v1:uses:since", "60", "beginning"]);
    note_and_end(&keys, &["early", "late"]).await;

    let uses = keys.store.list_uses().await.expect("list the uses");
    assert!(uses.last(&early.id).request.expect("a use") > in_an_hour - Duration::from_hours(2));
    assert_eq!(uses.last(&late.id).request, Some(UNIX_EPOCH + Duration::from_secs(seconds)));
    assert_eq!(uses.since, Some(UNIX_EPOCH + Duration::from_mins(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_score_that_is_no_date_is_the_first_or_the_last_one() {
    let server = RedisServer::start();
    let keys = Keys::at(&server.url(), long_timeouts());
    let (first, last) = (keys.add("first", "token-a").await, keys.add("last", "token-b").await);
    server.command(&["ZADD", REQUESTS, "-inf", "first", "+inf", "last"]);

    let uses = keys.store.list_uses().await.expect("list the uses");
    assert_eq!(uses.last(&first.id).request, Some(UNIX_EPOCH));
    assert_eq!(uses.last(&last.id).request, Some(UNIX_EPOCH + Duration::from_secs(253_402_300_799)));
}

#[tokio::test]
async fn uses_during_an_outage_are_written_after_it_and_each_outage_is_logged_once() {
    let (warnings, _guard) = Warnings::start();
    let mut server = RedisServer::start();
    let mut metrics = Registry::default();
    let (uses, _writer_end) = Keys::at(&server.url(), frequent_writes("shop:")).measured_uses(&mut metrics);
    for outage in 1..=2_u64 {
        server.stop();
        uses.recorder().note(&ApiKeyId::new("key"), ApiKeyUse::Request);
        let failed = writes(&metrics, "failed");
        wait_until("writes fail", async || writes(&metrics, "failed") >= failed + 2).await;
        assert_eq!((writes(&metrics, "written"), warnings.count()), (outage - 1, outage));

        server.start_again();
        wait_until("a write succeeds", async || writes(&metrics, "written") == outage).await;
        assert_eq!(server.command(&["ZRANGE", REQUESTS, "0", "-1"]), "key");
    }
}

#[tokio::test]
async fn keys_beyond_the_bound_are_not_recorded_which_is_logged() {
    let (warnings, _guard) = Warnings::start();
    let server = RedisServer::start();
    let keys = Keys::at(&server.url(), RedisSettings { max_known: 2, ..long_timeouts() });
    note_and_end(&keys, &["a", "b", "a", "c", "b"]).await;
    assert_eq!(server.command(&["ZRANGE", REQUESTS, "0", "-1"]), "a\nb");
    assert_eq!(warnings.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_invalidates_no_cached_key() {
    let proxied = Proxied::new(long_timeouts()).await;
    let invalidations = || proxied.metric("cache_invalidations_total");
    let key = proxied.keys.add("key", "token").await;
    wait_until("the invalidation of the key", async || invalidations() == 1).await;
    becomes(&proxied.directory, "token", Accepted).await;
    note_and_end(&proxied.keys, &["key"]).await;

    assert!(proxied.keys.store.list_uses().await.expect("list the uses").last(&key.id).request.is_some());
    // Another invalidation would have been sent before that of the other key.
    proxied.keys.add("other", "other").await;
    wait_until("the invalidation of the other key", async || invalidations() > 1).await;
    assert!(is_cached(&proxied.directory, "token"));
    assert_eq!(invalidations(), 2, "only those of the keys");
}
