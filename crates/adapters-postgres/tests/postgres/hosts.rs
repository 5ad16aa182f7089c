//! URLs with several hosts, and with the folder of a Unix socket.

use crate::prelude::*;

/// A machine without power or network does not refuse connections.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_does_not_respond_leaves_time_for_the_next_one() {
    let primary = PostgresServer::start();
    let port = primary.port();
    let silent = FaultProxy::to(port);
    silent.freeze();
    let hosts = format!("{},127.0.0.1:{port}", silent.address());
    let settings = PostgresSettings {
        connect_timeout: Duration::from_secs(8),
        ..settings()
    };
    let store = Store::at(&format!("postgres://postgres@{hosts}/postgres"), settings).await;
    store.adds_and_finds().await;
    assert_eq!(store.not_ready().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_a_unix_socket_is_a_host() {
    let server = PostgresServer::start();
    let folder = server.socket_directory().to_str().expect("UTF-8");
    let port = server.port();
    let encoded = folder.replace('/', "%2F");
    for (name, url) in [
        (
            "option",
            format!("postgres:///postgres?host={folder}&port={port}&user=postgres"),
        ),
        // Nothing is encrypted.
        (
            "encoded",
            format!("postgres://postgres@{encoded}:{port}/postgres?sslmode=require"),
        ),
    ] {
        let url = with_option(&url, &format!("application_name={name}"));
        let store = Store::at(&url, settings()).await;
        store.adds_and_finds().await;
        let ours = format!("FROM pg_stat_activity WHERE application_name = '{name}'");
        let local = format!("SELECT bool_and(client_port = -1) {ours}");
        assert_eq!(server.sql(&local), "t", "{url}");
    }
}
