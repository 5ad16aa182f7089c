//! Metrics of requests and batches.

pub(crate) mod connections;

use std::{fmt::Debug, str::FromStr, sync::Arc, time::Instant};

use animal_store_app::ports::PetRepository;
use animal_store_domain::PetStatus;
use animal_store_test_servers::PgDatabase;
use futures_util::{FutureExt, future::join_all};
use prometheus_client::{encoding::text::encode, registry::Registry};

use crate::{
    fixture::{Fixture, poll_once},
    keyed::add_keyed,
    outcomes::{Success, Timeout, Unavailable, Unknown, add, add_outcome, eventually, find, read_outcome},
    store::{ProxiedStore, Store, in_both_modes, settings, short_timeout},
};

/// The value of a series, without the prefix of its name.
#[track_caller]
fn value<T: FromStr<Err: Debug>>(registry: &Registry, series: &str) -> T {
    let mut text = String::new();
    encode(&mut text, registry).expect("the metrics are encoded");
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("postgres_{series} ")));
    // A histogram writes a sum of whole numbers with a fraction.
    let value = value.unwrap_or_else(|| panic!("no {series} in {text}"));
    value.strip_suffix(".0").unwrap_or(value).parse().expect("a number")
}

#[track_caller]
pub(crate) fn metric(registry: &Registry, series: &str) -> u64 {
    value(registry, series)
}

/// The values of metrics of one kind of request.
#[track_caller]
pub(crate) fn metrics<const N: usize>(registry: &Registry, kind: &str, names: [&str; N]) -> [u64; N] {
    names.map(|name| metric(registry, &format!("{name}{{kind=\"{kind}\"}}")))
}

const REQUESTS_AND_BATCHES: [&str; 3] = ["batch_requests_sum", "batch_requests_count", "queue_wait_seconds_count"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kind_of_request_is_counted_by_itself() {
    let database = PgDatabase::new();
    let Store { repository, registry, .. } = &Store::at(database.url(), settings()).await;
    let kinds = ["get", "list", "list_by_status", "create", "create_with_key"];
    let counts = || kinds.map(|kind| metrics(registry, kind, REQUESTS_AND_BATCHES)[0]);
    find(repository, 1).await.expect("a response");
    assert_eq!(counts(), [1, 0, 0, 0, 0]);
    repository.list(None, None, 1).await.expect("a list");
    assert_eq!(counts(), [1, 1, 0, 0, 0]);
    repository.list(Some(PetStatus::Sold), None, 1).await.expect("a list");
    assert_eq!(counts(), [1, 1, 1, 0, 0]);
    add(repository, "Rex").await.expect("added");
    assert_eq!(counts(), [1, 1, 1, 1, 0]);
    add_keyed(repository, "Rex").await;
    assert_eq!(counts(), [1; 5]);
    assert_eq!(metric(registry, "commits_total"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_counted_with_its_size_its_duration_and_the_wait_of_each_request() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings).await;
        let registry = &fixture.store.registry;
        let before = metrics(registry, "create", REQUESTS_AND_BATCHES);
        let commits = metric(registry, "commits_total");
        let durations = ["queue_wait_seconds_sum", "batch_duration_seconds_sum"]
            .map(|name| move || value::<f64>(registry, &format!("{name}{{kind=\"create\"}}")));
        let earlier = durations.map(|duration| duration());
        let start = Instant::now();
        let first = fixture.block().await;
        let names = ["a", "b", "c"];
        let batch = names.map(|name| fixture.begin(name));
        let queued = Instant::now();
        fixture.observer.wait_for_table_locks(1).await;
        let waited = queued.elapsed().as_secs_f64();
        fixture.observer.unlock().await;
        first.await.expect("added");
        join_all(batch).await.iter().for_each(|added| assert_eq!(add_outcome(added), Success));
        let total = start.elapsed().as_secs_f64();

        let after = metrics(registry, "create", REQUESTS_AND_BATCHES);
        assert_eq!([0, 1, 2].map(|index| after[index] - before[index]), [4, 2, 4]);
        assert_eq!(metric(registry, "commits_total"), commits + 2);
        let large = metric(registry, "batch_requests_bucket{le=\"4.0\",kind=\"create\"}");
        assert_eq!(large - metric(registry, "batch_requests_bucket{le=\"2.0\",kind=\"create\"}"), 1);
        // Three requests waited for the first batch.
        let [wait, duration] = [0, 1].map(|index| durations[index]() - earlier[index]);
        assert!((3.0 * waited..4.0 * total).contains(&wait), "{wait} of {waited} and {total}");
        assert!((waited..2.0 * total).contains(&duration), "{duration} of {waited} and {total}");
        assert_eq!(metrics(registry, "create", ["batch_duration_seconds_count"]), [after[1]]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_split_is_counted_as_retried() {
    let fixture = Fixture::new().await;
    let registry = &fixture.store.registry;
    fixture.observer.run("ALTER TABLE pets ADD CHECK (name <> 'bad')").await;
    let names = ["batch_retries_total", "batch_requests_count", "batch_requests_sum", "queue_wait_seconds_count"];
    let before = metrics(registry, "create", names);
    let commits = metric(registry, "commits_total");
    fixture.add_together(&["a", "b", "bad", "c"]).await;
    let after = metrics(registry, "create", names);
    // The first pet alone, then four pets, two times two, and two times one. Each request waited once.
    assert_eq!([0, 1, 2, 3].map(|index| after[index] - before[index]), [2, 6, 11, 5]);
    assert_eq!(metric(registry, "commits_total"), commits + 3);
}

/// The numbers of gets and creates without a response in time, and of unknown outcomes.
#[track_caller]
pub(crate) fn timeouts(registry: &Registry) -> [u64; 3] {
    let [get, create] = ["get", "create"].map(|kind| metrics(registry, kind, ["timeouts_total"])[0]);
    [get, create, metric(registry, "unknown_outcomes_total")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_without_a_response_in_time_are_counted_once() {
    let proxied = ProxiedStore::new(short_timeout()).await;
    let ProxiedStore { store: Store { repository, storage, registry, .. }, proxy, .. } = &proxied;
    // On a busy machine, requests of the start can be among them.
    let [get, create, unknown] = timeouts(registry);
    proxy.freeze();
    assert_eq!(read_outcome(&find(repository, 1).await), Timeout);
    assert_eq!(add_outcome(&add(repository, "lost").await), Unknown);
    assert_eq!(timeouts(registry), [get + 1, create, unknown + 1]);
    // Nothing is sent.
    assert_eq!(add_outcome(&add(repository, "never").await), Unavailable);
    assert_eq!(timeouts(registry), [get + 1, create, unknown + 1]);
    assert!(storage.readiness().check().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_outcome_is_counted_even_if_the_client_has_disconnected() {
    let proxied = ProxiedStore::new(short_timeout()).await;
    let ProxiedStore { store, proxy, .. } = &proxied;
    proxy.hold("lost");
    let repository = Arc::clone(&store.repository);
    let lost = poll_once(async move { add(&repository, "lost").await }.boxed());
    eventually("it is sent", async || proxy.held() > 0).await;
    drop(lost);
    eventually("it is counted", async || metric(&store.registry, "unknown_outcomes_total") == 1).await;
}
