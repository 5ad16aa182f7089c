//! Ready only if pets can be read and added.

use crate::prelude::*;

/// Two connections for creates, one for readiness, and none or one for reads.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_connection_for_reads_the_storage_is_not_ready() {
    let database = migrated().await;
    let user = user_with(&database, &ALL);
    let limit_to = |number| {
        let name = &user.name;
        database.sql(&format!("ALTER ROLE {name} CONNECTION LIMIT {number}"))
    };
    limit_to(3);
    let settings = PostgresSettings {
        connections_per_worker: 1,
        ..check()
    };
    let observer = SqlSession::of(&database).await;
    let store = Store::at(&user.url, settings).await;
    let connected = async || store.connections("creates") == [0, 2, 0];
    wait_until("the connections for creates", connected).await;
    // That of the start has ended.
    observer.wait_for_backends(2).await;
    let limit = "too many connections for role";
    let is_limited = async || {
        let reason = store.not_ready().await;
        reason.is_some_and(|reason| reason.contains(limit))
    };
    wait_until("the probe has the last connection", is_limited).await;
    store.find(1).await.expect_err("no connection is left");
    assert!(is_limited().await);

    limit_to(4);
    let is_found = async || store.find(1).await.is_ok();
    wait_until("a read succeeds", is_found).await;
    store.wait_until_ready().await;

    // The second worker has none, and could open none.
    let other = store.storage.repository();
    assert!(is_limited().await);
    drop(other);
    store.wait_until_ready().await;
}

/// A pool keeps server connections, and the role cannot open others.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_that_may_not_log_in_any_more_is_ready_while_its_connections_are_up() {
    let (server, store) = Store::served(settings()).await;
    server.sql("ALTER ROLE postgres NOLOGIN");
    assert_eq!(store.not_ready().await, None);
}
