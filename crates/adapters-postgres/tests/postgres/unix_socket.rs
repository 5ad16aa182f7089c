use animal_store_test_servers::PostgresServer;

use crate::{
    outcomes::adds_and_finds,
    store::{Store, settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_folder_of_a_unix_socket_is_a_host() {
    let server = PostgresServer::start();
    let (folder, port) = (server.socket_directory().to_str().expect("UTF-8"), server.port());
    let encoded = folder.replace('/', "%2F");
    for (number, url) in [
        format!("postgres:///postgres?host={folder}&port={port}&user=postgres"),
        format!("postgres:///postgres?host={encoded}&port={port}&user=postgres"),
        format!("postgres://postgres@{encoded}:{port}/postgres"),
        // Nothing is encrypted.
        format!("postgres://postgres@{encoded}:{port}/postgres?sslmode=require"),
        format!("postgres://postgres@{encoded}:{port}/postgres?sslmode=verify-full&sslrootcert=/nowhere"),
    ]
    .iter()
    .enumerate()
    {
        let name = format!("socket-{number}");
        let separator = if url.contains('?') { '&' } else { '?' };
        let store = Store::at(&format!("{url}{separator}application_name={name}"), settings()).await;
        adds_and_finds(&store.repository).await;
        let activity = format!("FROM pg_stat_activity WHERE application_name = '{name}'");
        assert_eq!(server.sql("postgres", &format!("SELECT bool_and(client_port = -1) {activity}")), "t", "{url}");
    }
}
