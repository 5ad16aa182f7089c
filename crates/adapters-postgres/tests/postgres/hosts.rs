//! What URLs can say beside one host and one database.

use std::time::Duration;

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::{
    ports::{AddPet, PetRepository},
    test_support::new_pet,
};
use animal_store_test_servers::{FaultProxy, PgDatabase, PostgresServer};

use crate::store::{Store, settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_hosts_the_one_that_can_be_written_is_used() {
    let mut away = PostgresServer::start();
    away.stop();
    let read_only = PostgresServer::with(&["default_transaction_read_only=on"]);
    let primary = PostgresServer::start();
    let hosts = [&away, &read_only, &primary].map(|server| format!("127.0.0.1:{}", server.port())).join(",");
    let url = format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write");

    let store = Store::at(&url, settings()).await;
    let added = store.repository.add(AddPet::new(new_pet())).await.expect("added").pet;
    assert_eq!(store.repository.find(added.id()).await.expect("found"), Some(added));
    store.storage.readiness().check().await.expect("it is ready");
    assert_eq!(primary.sql("postgres", "SELECT count(*) FROM pets"), "1");
    assert_eq!(read_only.sql("postgres", "SELECT to_regclass('pets') IS NULL"), "t");
}

/// A machine that has stopped, or lost its network, refuses nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_says_nothing_leaves_time_for_the_next_one() {
    let primary = PostgresServer::start();
    let silent = FaultProxy::to(primary.port());
    silent.freeze();
    let url = format!("postgres://postgres@{},127.0.0.1:{}/postgres", silent.address(), primary.port());

    let settings = PostgresSettings { connect_timeout: Duration::from_secs(2), ..settings() };
    let store = Store::at(&url, settings).await;
    store.repository.add(AddPet::new(new_pet())).await.expect("added");
    store.storage.readiness().check().await.expect("it is ready");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_of_the_url_hold_beside_our_own() {
    let database = PgDatabase::new();
    database.sql("CREATE SCHEMA other");
    let separator = if database.url().contains('?') { '&' } else { '?' };
    let url = format!("{}{separator}options=-c%20search_path%3Dother", database.url());

    let store = Store::at(&url, settings()).await;
    store.repository.add(AddPet::new(new_pet())).await.expect("added");
    assert_eq!(store.repository.list(None, None, 2).await.expect("a list").len(), 1);
    assert_eq!(database.sql("SELECT count(*) FROM other.pets"), "1");
    assert_eq!(database.sql("SELECT to_regclass('public.pets') IS NULL"), "t");
    let named = "SELECT count(*) > 2 FROM pg_stat_activity \
         WHERE application_name = 'animal-store' AND datname = current_database()";
    assert_eq!(database.sql(named), "t");
}
