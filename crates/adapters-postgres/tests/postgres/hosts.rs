//! URLs with several hosts, and with the folder of a Unix socket.

use std::time::Duration;

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_test_servers::{FaultProxy, PostgresServer};

use crate::{
    outcomes::adds_and_finds,
    store::{Store, settings, with_option},
};

/// A machine without power or network does not refuse connections.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_does_not_respond_leaves_time_for_the_next_one() {
    let primary = PostgresServer::start();
    let silent = FaultProxy::to(primary.port());
    silent.freeze();
    let url = format!(
        "postgres://postgres@{},127.0.0.1:{}/postgres",
        silent.address(),
        primary.port()
    );

    let settings = PostgresSettings {
        connect_timeout: Duration::from_secs(2),
        ..settings()
    };
    let store = Store::at(&url, settings).await;
    adds_and_finds(&store.repository).await;
    store.storage.readiness().check().await.expect("ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_a_unix_socket_is_a_host() {
    let server = PostgresServer::start();
    let folder = server.socket_directory().to_str().expect("UTF-8");
    let port = server.port();
    let encoded = folder.replace('/', "%2F");
    for (number, url) in [
        format!("postgres:///postgres?host={folder}&port={port}&user=postgres"),
        // Nothing is encrypted.
        format!("postgres://postgres@{encoded}:{port}/postgres?sslmode=require"),
    ]
    .iter()
    .enumerate()
    {
        let name = format!("socket-{number}");
        let store = Store::at(
            &with_option(url, &format!("application_name={name}")),
            settings(),
        )
        .await;
        adds_and_finds(&store.repository).await;
        let activity = format!("FROM pg_stat_activity WHERE application_name = '{name}'");
        assert_eq!(
            server.sql(
                "postgres",
                &format!("SELECT bool_and(client_port = -1) {activity}")
            ),
            "t",
            "{url}"
        );
    }
}
