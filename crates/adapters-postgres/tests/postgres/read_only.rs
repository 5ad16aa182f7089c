//! A server that has become read-only, such as a primary that was demoted: its pets may be out of date.

use animal_store_adapters_postgres::diagnose;
use animal_store_app::{Verdict, test_support::assert_finding};

use crate::{bulk::bulk, prelude::*, store::set};

/// Everything fails from some moment on, and then stays so.
async fn fails(store: &Store) {
    store.wait_for(Unavailable).await;
    for _ in 0..10 {
        assert_eq!(store.list_find_add().await, [Unavailable; 3]);
        assert!(store.not_ready().await.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_connections_that_cannot_write_are_refused() {
    let fixture = Fixture::new().await;
    let observer = &fixture.observer;
    let name = fixture.database.name();
    let set = format!("ALTER DATABASE {name} SET default_transaction_read_only");
    observer.run(&format!("{set} = on")).await;
    assert_eq!(fixture.list_find_add().await, [Success; 3]);
    assert_eq!(fixture.not_ready().await, None, "they can still write");

    observer.end_backends().await;
    fails(&fixture).await;
    observer.run(&format!("{set} = off")).await;
    fixture.wait_until_it_works().await;
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
        set(&server, "default_transaction_read_only", "on").await;
        let reads_fail = async || read_outcome(&store.find(1).await) == Unavailable;
        wait_until("reads fail", reads_fail).await;
        fails(&store).await;
        set(&server, "default_transaction_read_only", "off").await;
        store.wait_until_it_works().await;
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
        server.sql("SELECT pg_promote()");
        store.wait_until_it_works().await;
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
        let store = Store::at(&url, settings()).await;
        store.wait_until_it_works().await;
        let writable = bulk(&url).check_writable().await;
        writable.expect("a copy follows the primary");
        let findings = diagnose(&endpoint(&url), &endpoint(&url), &settings(), true).await;
        assert_finding(&findings, "postgres.role", Verdict::Ok, "primary");
    }
    for table in ["pets", "idempotency_keys"] {
        let exists = format!("SELECT to_regclass('{table}') IS NOT NULL");
        assert_eq!(read_only.sql(&exists), "f");
        assert_eq!(primary.sql(&exists), "t");
    }
}
