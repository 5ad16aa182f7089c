//! Metrics of connections.

use std::time::Duration;

use animal_store_adapters_postgres::PostgresSettings;

use super::*;
use crate::{fixture::begin_to_find, store::ServedStore};

/// Numbers of connections that are connecting, connected and unavailable, and of reconnects.
pub(crate) fn connections(registry: &Registry, purpose: &str) -> [u64; 4] {
    let [connecting, connected, unavailable] = ["connecting", "connected", "unavailable"]
        .map(|state| metric(registry, &format!("connections{{purpose=\"{purpose}\",state=\"{state}\"}}")));
    let reconnects = metric(registry, &format!("reconnects_total{{purpose=\"{purpose}\"}}"));
    [connecting, connected, unavailable, reconnects]
}

async fn wait_for_connections(registry: &Registry, expected: [(&str, [u64; 4]); 3]) {
    let what = format!("{expected:?}");
    eventually(&what, async || expected.iter().all(|(purpose, counts)| connections(registry, purpose) == *counts))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_counted_in_their_state_and_when_they_are_replaced() {
    let ServedStore { store, mut server } = ServedStore::new(settings()).await;
    wait_for_connections(
        &store.registry,
        [("reads", [0, 2, 0, 0]), ("creates", [0, 2, 0, 0]), ("readiness", [0, 1, 0, 0])],
    )
    .await;
    for replaced in [1, 2] {
        server.stop();
        let before = replaced - 1;
        wait_for_connections(
            &store.registry,
            [("reads", [0, 0, 2, before * 2]), ("creates", [0, 0, 2, before * 2]), ("readiness", [0, 0, 1, before])],
        )
        .await;
        server.start_again();
        wait_for_connections(
            &store.registry,
            [
                ("reads", [0, 2, 0, replaced * 2]),
                ("creates", [0, 2, 0, replaced * 2]),
                ("readiness", [0, 1, 0, replaced]),
            ],
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_and_queues_are_counted_until_their_repository_is_dropped() {
    // A connection attempt is not interrupted.
    let settings = PostgresSettings { connect_timeout: Duration::from_secs(1), ..settings() };
    let proxied = ProxiedStore::new(settings).await;
    let ProxiedStore { store, proxy, .. } = &proxied;
    let registry = &store.registry;
    assert_eq!(metrics(registry, "get", ["queue_limit"]), [1000]);
    proxy.freeze();
    let worker = Arc::new(store.storage.repository());
    let read = begin_to_find(&worker, 1);
    eventually("the worker connects", async || connections(registry, "reads") == [2, 2, 0, 0]).await;
    assert_eq!(metrics(registry, "get", ["queue_limit"]), [2000]);
    drop((read, worker));
    eventually("its connections end", async || connections(registry, "reads") == [0, 2, 0, 0]).await;
    assert_eq!(metrics(registry, "get", ["queue_limit", "queue_requests"]), [1000, 0]);
}
