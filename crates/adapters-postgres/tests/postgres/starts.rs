//! Starts without a database, or with one that refuses connections or cannot store pets.

use std::time::Duration;

use animal_store_adapters_postgres::{MigrationError, PostgresSettings, SchemaMode};
use animal_store_test_servers::{PgDatabase, PostgresServer};
use tokio::time::timeout;

use crate::{
    outcomes::{
        PROMPT, Success, Unavailable, list_find_add, not_ready, reason, wait_for_outcome,
        wait_until_ready,
    },
    store::{Store, endpoint, migrations, proxy_to, settings, start_storage},
};

fn not_required() -> PostgresSettings {
    PostgresSettings {
        required_at_start: false,
        ..settings()
    }
}

async fn start_error(url: &str, settings: PostgresSettings) -> MigrationError {
    let started = timeout(
        PROMPT,
        start_storage(endpoint(url), endpoint(url), settings),
    )
    .await;
    started
        .expect("the start ends")
        .err()
        .expect("the start fails")
}

/// A storage that is not required starts, is not ready, and can be used after the repair.
async fn starts_and_recovers(url: &str, settings: PostgresSettings, repair: impl AsyncFnOnce()) {
    let store = timeout(PROMPT, Store::at(url, settings))
        .await
        .expect("the storage starts");
    assert_eq!(list_find_add(&store.repository).await, [Unavailable; 3]);
    assert!(not_ready(&store.storage).await.is_some());
    repair().await;
    wait_for_outcome(&store.repository, Success).await;
    wait_until_ready(&store.storage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_reported_but_not_shown() {
    let server = PostgresServer::with_password("right");
    let url = server
        .url("postgres")
        .replace("postgres@", "postgres:wr0ng@");
    let error = start_error(&url, settings()).await;
    let text = reason(&error);
    assert!(
        text.contains(r#"password authentication failed for user "postgres" (SQLSTATE 28P01)"#),
        "{text}"
    );
    for text in [text, format!("{error:?}"), format!("{:?}", endpoint(&url))] {
        assert!(!text.contains("wr0ng"), "{text}");
    }
    let repair = async || drop(server.sql("postgres", "ALTER ROLE postgres PASSWORD 'wr0ng'"));
    starts_and_recovers(&url, not_required(), repair).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_a_start_fails_or_waits_for_one_in_the_background() {
    let mut server = PostgresServer::start();
    let url = server.url("postgres");
    server.stop();
    let login = url.strip_prefix("postgres://").expect("a scheme");
    for schema in [SchemaMode::Check, SchemaMode::Migrate] {
        let text = reason(
            &start_error(
                &url,
                PostgresSettings {
                    schema,
                    ..settings()
                },
            )
            .await,
        );
        assert!(
            text.starts_with(&format!("{login}: ")) && text.contains("Connection refused"),
            "{text}"
        );
    }
    starts_and_recovers(&url, not_required(), async || server.start_again()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_start_names_each_host_that_was_tried() {
    for (url, logins) in [
        (
            "postgres://shop:top-secret@127.0.0.1:1,[::1]:2/store",
            ["shop@127.0.0.1:1/store: ", "; shop@[::1]:2/store: "],
        ),
        (
            "postgres:///store?host=/nowhere",
            [
                "(the user of this process)@/nowhere:5432/store: ",
                "No such file",
            ],
        ),
    ] {
        let text = reason(&start_error(url, settings()).await);
        assert!(
            logins.iter().all(|login| text.contains(login)) && !text.contains("top-secret"),
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_respond_delays_the_start_by_the_start_timeout() {
    let server = PostgresServer::start();
    server.pause();
    starts_and_recovers(&server.url("postgres"), not_required(), async || {
        server.resume();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_frozen_connection_a_start_fails_in_time() {
    let connect_timeout = Duration::from_millis(500);
    let database = PgDatabase::new();
    // With the empty text, nothing is forwarded. Otherwise the statement with this text gets no response: Diesel sends
    // its own statements first.
    for stuck in ["", "TIME ZONE", "to_regclass"] {
        let (mut proxy, url) = proxy_to(database.url());
        if stuck.is_empty() {
            proxy.freeze();
        } else {
            proxy.hold(stuck);
        }
        let text = reason(
            &start_error(
                &url,
                PostgresSettings {
                    connect_timeout,
                    ..settings()
                },
            )
            .await,
        );
        assert!(text.contains("no response in time"), "{text}");
        proxy.heal();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_store_every_name_is_refused() {
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let database = PgDatabase::encoded(encoding);
        let migrations = migrations(database.url());
        for result in [migrations.run().await, migrations.pending().await] {
            let error = result.expect_err("it is refused");
            assert!(
                matches!(&error, MigrationError::Unusable(text) if text.contains(encoding)),
                "{error}"
            );
        }
        for settings in [settings(), not_required()] {
            let text = reason(&start_error(database.url(), settings).await);
            assert!(text.contains(encoding) && text.contains("UTF8"), "{text}");
        }
        assert_eq!(
            database
                .sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"),
            "0"
        );
    }
}
