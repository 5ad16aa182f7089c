//! A server that has become read-only, such as a primary that was demoted: its pets may be out of date.

use std::time::Duration;

use animal_store_adapters_postgres::{PostgresSettings, diagnose};
use animal_store_app::{Verdict, ports::BulkStorage, test_support::assert_finding};
use animal_store_test_servers::PostgresServer;

use crate::{
    bulk::bulk,
    fixture::Fixture,
    outcomes::{
        Success, Unavailable, find, list_find_add, not_ready, read_outcome, wait_for_outcome,
        wait_until, wait_until_ready,
    },
    store::{Store, endpoint, in_both_modes, settings},
};

/// Everything fails from some moment on, and then stays so.
async fn fails(store: &Store) {
    wait_for_outcome(&store.repository, Unavailable).await;
    for _ in 0..10 {
        assert_eq!(list_find_add(&store.repository).await, [Unavailable; 3]);
        assert!(not_ready(&store.storage).await.is_some());
    }
}

async fn works(store: &Store) {
    wait_for_outcome(&store.repository, Success).await;
    wait_until_ready(&store.storage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_connections_that_cannot_write_are_refused() {
    let Fixture {
        store,
        observer,
        database,
    } = Fixture::new().await;
    works(&store).await;
    let set = format!(
        "ALTER DATABASE {} SET default_transaction_read_only",
        database.name()
    );
    observer.run(&format!("{set} = on")).await;
    assert_eq!(list_find_add(&store.repository).await, [Success; 3]);
    assert_eq!(
        not_ready(&store.storage).await,
        None,
        "they can still write"
    );

    observer
        .wait_until_ended(&observer.terminate_backends().await)
        .await;
    fails(&store).await;
    observer.run(&format!("{set} = off")).await;
    works(&store).await;
}

/// Reads alone find out. Behind a pooler, the probe does.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_become_read_only_are_replaced() {
    let settings = PostgresSettings {
        probe_interval: Duration::from_millis(100),
        ..settings()
    };
    in_both_modes(&settings, async |settings| {
        let (server, store) = Store::served(settings).await;
        let set = |value: &str| {
            server.sql(
                "postgres",
                &format!("ALTER SYSTEM SET default_transaction_read_only = {value}"),
            );
            server.sql("postgres", "SELECT pg_reload_conf()");
        };
        set("on");
        let read = async || read_outcome(&find(&store.repository, 1).await);
        wait_until("reads fail", async || read().await == Unavailable).await;
        fails(&store).await;
        set("off");
        works(&store).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_restarts_as_a_standby_is_used_again_after_its_promotion() {
    in_both_modes(&settings(), async |settings| {
        let (mut server, store) = Store::served(settings).await;
        server.stop();
        server.start_as_standby();
        fails(&store).await;
        server.sql("postgres", "SELECT pg_promote()");
        works(&store).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_hosts_the_primary_is_used() {
    let mut stopped = PostgresServer::start();
    stopped.stop();
    let mut standby = PostgresServer::start();
    standby.stop();
    standby.start_as_standby();
    let read_only = PostgresServer::with(&["default_transaction_read_only=on"]);
    let primary = PostgresServer::start();
    let hosts = [&stopped, &standby, &read_only, &primary]
        .map(|server| format!("127.0.0.1:{}", server.port()))
        .join(",");
    for option in ["", "?target_session_attrs=read-write"] {
        let url = format!("postgres://postgres@{hosts}/postgres{option}");
        works(&Store::at(&url, settings()).await).await;
        let writable = bulk(&url).check_writable().await;
        writable.expect("a copy follows the primary");
        let findings = diagnose(&endpoint(&url), &endpoint(&url), &settings(), true).await;
        assert_finding(&findings, "postgres.role", Verdict::Ok, "primary");
    }
    for table in ["pets", "idempotency_keys"] {
        let exists = format!("SELECT to_regclass('{table}') IS NOT NULL");
        assert_eq!(read_only.sql("postgres", &exists), "f");
        assert_eq!(primary.sql("postgres", &exists), "t");
    }
}
