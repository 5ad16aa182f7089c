//! Metrics of requests, batches and connections.

use std::{fmt::Debug, str::FromStr, time::Instant};

use animal_store_app::ports::PetRepository;
use animal_store_domain::PetStatus;
use animal_store_test_servers::PgDatabase;
use futures_util::future::join_all;
use prometheus_client::{encoding::text::encode, registry::Registry};

use crate::{
    fixture::Fixture,
    keyed::add_keyed,
    outcomes::{
        Success, Timeout, Unavailable, Unknown, add, add_outcome, find, read_outcome, wait_until,
    },
    store::{Store, in_both_modes, settings, short_timeout},
};

/// The value of a series.
#[track_caller]
fn value<T: FromStr<Err: Debug>>(registry: &Registry, series: &str) -> T {
    let mut text = String::new();
    encode(&mut text, registry).expect("the metrics are encoded");
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{series} ")));
    // A histogram writes a sum of whole numbers with a fraction.
    let value = value.unwrap_or_else(|| panic!("no {series} in {text}"));
    value
        .strip_suffix(".0")
        .unwrap_or(value)
        .parse()
        .expect("a number")
}

#[track_caller]
fn metric(registry: &Registry, series: &str) -> u64 {
    value(registry, series)
}

/// The values of metrics of one kind of request.
#[track_caller]
pub(crate) fn metrics<const N: usize>(
    registry: &Registry,
    kind: &str,
    names: [&str; N],
) -> [u64; N] {
    names.map(|name| metric(registry, &format!("storage_{name}{{kind=\"{kind}\"}}")))
}

const REQUESTS_AND_BATCHES: [&str; 2] =
    ["queue_wait_seconds_count", "batch_duration_seconds_count"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kind_of_request_is_counted_by_itself() {
    let database = PgDatabase::new();
    let Store {
        repository,
        registry,
        ..
    } = &Store::at(database.url(), settings()).await;
    let kinds = ["read", "create", "create_with_key"];
    let counts = || {
        kinds
            .map(|kind| metrics(registry, kind, REQUESTS_AND_BATCHES))
            .map(|[requests, batches]| {
                assert_eq!(requests, batches);
                requests
            })
    };
    find(repository, 1).await.expect("a response");
    assert_eq!(counts(), [1, 0, 0]);
    for status in [None, Some(PetStatus::Sold)] {
        repository.list(status, None, 1).await.expect("a list");
    }
    assert_eq!(counts(), [3, 0, 0]);
    add(repository, "Rex").await.expect("added");
    assert_eq!(counts(), [3, 1, 0]);
    add_keyed(repository, "Rex").await;
    assert_eq!(counts(), [3, 1, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_counted_with_its_duration_and_the_wait_of_each_request() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings).await;
        let registry = &fixture.store.registry;
        let counts = || metrics(registry, "create", REQUESTS_AND_BATCHES);
        let seconds = || {
            ["queue_wait_seconds_sum", "batch_duration_seconds_sum"]
                .map(|name| value::<f64>(registry, &format!("storage_{name}{{kind=\"create\"}}")))
        };
        let counts_before = counts();
        let seconds_before = seconds();
        let start = Instant::now();
        let first = fixture.block().await;
        let batch = ["a", "b", "c"].map(|name| fixture.begin(name));
        let held = Instant::now();
        fixture.observer.wait_for_table_locks(1).await;
        let held = held.elapsed().as_secs_f64();
        fixture.observer.unlock().await;
        first.await.expect("added");
        join_all(batch)
            .await
            .iter()
            .for_each(|added| assert_eq!(add_outcome(added), Success));

        let total = start.elapsed().as_secs_f64();
        assert_eq!(counts(), [counts_before[0] + 4, counts_before[1] + 2]);
        let [wait, duration] = [0, 1].map(|index| seconds()[index] - seconds_before[index]);
        // Three requests waited for the first batch.
        assert!(
            (3.0 * held..4.0 * total).contains(&wait),
            "{wait} of {held} and {total}"
        );
        assert!(
            (held..2.0 * total).contains(&duration),
            "{duration} of {held} and {total}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_part_of_a_batch_that_is_split_is_counted_and_each_request_once() {
    let fixture = Fixture::new().await;
    let registry = &fixture.store.registry;
    fixture
        .observer
        .run("ALTER TABLE pets ADD CHECK (name <> 'bad')")
        .await;
    let before = metrics(registry, "create", REQUESTS_AND_BATCHES);
    fixture.add_together(&["a", "b", "bad", "c"]).await;
    let after = metrics(registry, "create", REQUESTS_AND_BATCHES);
    // The first pet alone, then four pets, two times two, and two times one. Each request waited once.
    assert_eq!([0, 1].map(|index| after[index] - before[index]), [5, 6]);
}

/// The number of requests that failed for this reason.
#[track_caller]
fn failures(registry: &Registry, reason: &str) -> u64 {
    metric(
        registry,
        &format!("storage_failures_total{{reason=\"{reason}\"}}"),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_failure_is_counted_once_by_its_reason() {
    let (fixture, proxy) = Fixture::proxied(short_timeout()).await;
    let Store {
        repository,
        storage,
        registry,
        ..
    } = &fixture.store;
    // On a busy machine, requests of the start can be among them.
    let counts =
        || ["timeout", "outcome_unknown", "unavailable"].map(|reason| failures(registry, reason));
    let [timeouts, unknown, unavailable] = counts();
    proxy.freeze();
    assert_eq!(read_outcome(&find(repository, 1).await), Timeout);
    assert_eq!(add_outcome(&add(repository, "lost").await), Unknown);
    assert_eq!(counts(), [timeouts + 1, unknown + 1, unavailable]);
    // Nothing is sent.
    assert_eq!(add_outcome(&add(repository, "never").await), Unavailable);
    assert_eq!(counts(), [timeouts + 1, unknown + 1, unavailable + 1]);
    assert!(storage.readiness().check().await.is_err());
}

/// Numbers of connections that are connecting, connected and unavailable.
pub(crate) fn connections(registry: &Registry, purpose: &str) -> [u64; 3] {
    ["connecting", "connected", "unavailable"].map(|state| {
        metric(
            registry,
            &format!("postgres_connections{{purpose=\"{purpose}\",state=\"{state}\"}}"),
        )
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_counted_in_their_state() {
    let (mut server, store) = Store::served(settings()).await;
    let all_are = async |expected: [u64; 3]| {
        wait_until(&format!("{expected:?}"), async || {
            ["reads", "creates"]
                .iter()
                .all(|purpose| connections(&store.registry, purpose) == expected)
        })
        .await;
    };
    all_are([0, 2, 0]).await;
    for _ in 0..2 {
        server.stop();
        all_are([0, 0, 2]).await;
        server.start_again();
        all_are([0, 2, 0]).await;
    }
}
