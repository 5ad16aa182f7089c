//! Metrics of requests, batches and connections. The unit tests of `batching` have their values.

use animal_store_app::ports::PetRepository;
use animal_store_domain::PetStatus;
use animal_store_test_servers::PgDatabase;
use prometheus_client::{encoding::text::encode, registry::Registry};

use crate::{
    keyed::add_keyed,
    outcomes::{add, find},
    store::{Store, settings},
};

/// The value of a counter or gauge.
#[track_caller]
fn metric(registry: &Registry, series: &str) -> u64 {
    let mut text = String::new();
    encode(&mut text, registry).expect("the metrics are encoded");
    let prefix = format!("{series} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&prefix));
    let value = value.unwrap_or_else(|| panic!("no {series} in {text}"));
    value.parse().expect("a number")
}

/// The numbers of requests that were sent, and of batches, of this kind.
#[track_caller]
pub(crate) fn requests_and_batches(registry: &Registry, kind: &str) -> [u64; 2] {
    ["queue_wait", "batch_duration"].map(|name| {
        metric(
            registry,
            &format!("storage_{name}_seconds_count{{kind=\"{kind}\"}}"),
        )
    })
}

/// The number of batches of reads.
#[track_caller]
pub(crate) fn read_batches(registry: &Registry) -> u64 {
    requests_and_batches(registry, "read")[1]
}

/// The numbers of requests that failed by a timeout, with an unknown outcome, and as unavailable.
#[track_caller]
pub(crate) fn failures(registry: &Registry) -> [u64; 3] {
    ["timeout", "outcome_unknown", "unavailable"].map(|reason| {
        metric(
            registry,
            &format!("storage_failures_total{{reason=\"{reason}\"}}"),
        )
    })
}

/// Numbers of connections that are connecting, connected and unavailable.
#[track_caller]
pub(crate) fn connections(registry: &Registry, purpose: &str) -> [u64; 3] {
    ["connecting", "connected", "unavailable"].map(|state| {
        let labels = format!("purpose=\"{purpose}\",state=\"{state}\"");
        metric(registry, &format!("postgres_connections{{{labels}}}"))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_request_is_counted_by_itself() {
    let database = PgDatabase::new();
    let store = Store::at(database.url(), settings()).await;
    let counts = || {
        ["read", "create", "create_with_key"]
            .map(|kind| requests_and_batches(&store.registry, kind))
    };
    let repository = &store.repository;
    find(repository, 1).await.expect("a response");
    for status in [None, Some(PetStatus::Sold)] {
        repository.list(status, None, 1).await.expect("a list");
    }
    assert_eq!(counts(), [[3, 3], [0, 0], [0, 0]]);
    add(repository, "Rex").await.expect("added");
    assert_eq!(counts(), [[3, 3], [1, 1], [0, 0]]);
    add_keyed(repository, "Rex").await;
    assert_eq!(counts(), [[3, 3], [1, 1], [1, 1]]);
}
