//! Starts without a database, or with one that refuses connections or cannot store pets.

use crate::prelude::*;

fn not_required() -> PostgresSettings {
    PostgresSettings {
        required_at_start: false,
        ..settings()
    }
}

/// The reason of a start that fails.
async fn start_error(url: &str, settings: PostgresSettings) -> String {
    let started = timeout(PROMPT, start_storage(url, url, settings)).await;
    let error = started.expect("the start ends").err();
    reason(&error.expect("the start fails"))
}

/// A storage that is not required starts, is not ready, and can be used after the repair.
async fn starts_and_recovers(url: &str, repair: impl AsyncFnOnce()) {
    let store = timeout(PROMPT, Store::at(url, not_required())).await;
    let store = store.expect("the storage starts");
    assert_eq!(store.list_find_add().await, [Unavailable; 3]);
    assert!(store.not_ready().await.is_some());
    repair().await;
    store.wait_until_it_works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_reported_but_not_shown() {
    let server = PostgresServer::with_password("right");
    let url = server.url();
    let url = url.replace("postgres@", "postgres:wr0ng@");
    let error = start_storage(&url, &url, settings()).await.err();
    let error = error.expect("refused");
    let text = reason(&error);
    let failed = r#"password authentication failed for user "postgres" (SQLSTATE 28P01)"#;
    assert!(text.contains(failed), "{text}");
    for text in [text, format!("{error:?}"), format!("{:?}", endpoint(&url))] {
        assert!(!text.contains("wr0ng"), "{text}");
    }
    let repair = async || drop(server.sql("ALTER ROLE postgres PASSWORD 'wr0ng'"));
    starts_and_recovers(&url, repair).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_a_start_fails_or_waits_for_one_in_the_background() {
    let mut server = PostgresServer::start();
    let url = server.url();
    server.stop();
    let login = url.strip_prefix("postgres://").expect("a scheme");
    for settings in [check(), settings()] {
        let text = start_error(&url, settings).await;
        assert!(text.starts_with(&format!("{login}: ")), "{text}");
        assert!(text.contains("Connection refused"), "{text}");
    }
    starts_and_recovers(&url, async || server.start_again()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_start_names_each_host_that_was_tried() {
    for (url, parts) in [
        (
            "postgres://shop:top-secret@127.0.0.1:1,[::1]:2/store",
            ["shop@127.0.0.1:1/store: ", "; shop@[::1]:2/store: "],
        ),
        (
            "postgres:///store?host=/nowhere",
            ["@/nowhere:5432/store: ", "No such file"],
        ),
    ] {
        let text = start_error(url, settings()).await;
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(!text.contains("top-secret"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_respond_delays_the_start_by_the_start_timeout() {
    let server = PostgresServer::start();
    server.pause();
    starts_and_recovers(&server.url(), async || server.resume()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_frozen_connection_a_start_fails_in_time() {
    let settings = PostgresSettings {
        connect_timeout: Duration::from_millis(500),
        ..settings()
    };
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
        let text = start_error(&url, settings.clone()).await;
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
            let text = start_error(database.url(), settings).await;
            assert!(text.contains(encoding) && text.contains("UTF8"), "{text}");
        }
        let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
        assert_eq!(database.sql(tables), "0");
    }
}
