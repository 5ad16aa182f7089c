//! Ready only if pets can be read and added.

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_test_servers::PostgresServer;

use crate::{
    metrics::connections,
    outcomes::{find, not_ready, wait_until, wait_until_ready},
    sql_session::SqlSession,
    store::{Store, check, settings},
};

/// Two connections for creates, one for readiness, and none or one for reads.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_connection_for_reads_the_storage_is_not_ready() {
    let server = PostgresServer::start();
    let url = server.url("postgres");
    drop(Store::at(&url, settings()).await);
    server.sql(
        "postgres",
        "CREATE ROLE keeper LOGIN CONNECTION LIMIT 3; GRANT ALL ON ALL TABLES IN SCHEMA public TO keeper;
        GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO keeper",
    );
    let settings = PostgresSettings {
        connections_per_worker: 1,
        ..check()
    };
    let observer = SqlSession::at(&url).await;
    let store = Store::at(&url.replace("postgres@", "keeper@"), settings).await;
    wait_until("the connections for creates", async || {
        connections(&store.registry, "creates") == [0, 2, 0]
    })
    .await;
    // That of the start has ended.
    observer.wait_for_backends(2).await;
    let limit = "too many connections for role";
    wait_until("the probe has the last connection", async || {
        not_ready(&store.storage)
            .await
            .is_some_and(|reason| reason.contains(limit))
    })
    .await;
    find(&store.repository, 1)
        .await
        .expect_err("no connection is left");
    let reason = not_ready(&store.storage).await.expect("not ready");
    assert!(reason.contains(limit), "{reason}");

    server.sql("postgres", "ALTER ROLE keeper CONNECTION LIMIT 4");
    wait_until("a read succeeds", async || {
        find(&store.repository, 1).await.is_ok()
    })
    .await;
    wait_until_ready(&store.storage).await;

    // The second worker has none, and could open none.
    let other = store.storage.repository();
    let reason = not_ready(&store.storage).await.expect("not ready");
    assert!(reason.contains(limit), "{reason}");
    drop(other);
    wait_until_ready(&store.storage).await;
}

/// A pool keeps server connections, and the role cannot open others.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_that_may_not_log_in_any_more_is_ready_while_its_connections_are_up() {
    let server = PostgresServer::start();
    let url = server.url("postgres");
    let store = Store::at(&url, settings()).await;
    wait_until("a read succeeds", async || {
        find(&store.repository, 1).await.is_ok()
    })
    .await;
    wait_until_ready(&store.storage).await;
    store.wait_for_connections().await;
    server.sql("postgres", "ALTER ROLE postgres NOLOGIN");
    assert_eq!(not_ready(&store.storage).await, None);
}
