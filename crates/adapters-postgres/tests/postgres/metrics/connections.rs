//! Metrics of connections.

use std::time::Duration;

use animal_store_adapters_postgres::PostgresSettings;

use super::*;
use crate::{fixture::begin_to_find, store::ServedStore};

/// Numbers of connections that are connecting, connected and unavailable.
pub(crate) fn connections(registry: &Registry, purpose: &str) -> [u64; 3] {
    ["connecting", "connected", "unavailable"]
        .map(|state| metric(registry, &format!("postgres_connections{{purpose=\"{purpose}\",state=\"{state}\"}}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_counted_in_their_state() {
    let ServedStore { store, mut server } = ServedStore::new(settings()).await;
    let all_are = async |expected: [u64; 3]| {
        eventually(&format!("{expected:?}"), async || {
            ["reads", "creates"].iter().all(|purpose| connections(&store.registry, purpose) == expected)
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_counted_until_their_repository_is_dropped() {
    // A connection attempt is not interrupted.
    let settings = PostgresSettings { connect_timeout: Duration::from_secs(1), ..settings() };
    let proxied = ProxiedStore::new(settings).await;
    let ProxiedStore { store, proxy, .. } = &proxied;
    let registry = &store.registry;
    proxy.freeze();
    let worker = Arc::new(store.storage.repository());
    let read = begin_to_find(&worker, 1);
    eventually("the worker connects", async || connections(registry, "reads") == [2, 2, 0]).await;
    drop((read, worker));
    eventually("its connections end", async || connections(registry, "reads") == [0, 2, 0]).await;
}
