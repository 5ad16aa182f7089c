//! Starts without a database, or with one that lets nobody in.

use std::time::{Duration, Instant};

use animal_store_adapters_postgres::{PgStorage, PostgresSettings, StartError};
use animal_store_test_servers::{PgDatabase, PostgresServer};
use tokio::time::timeout;

use crate::{
    calls::{AT_ONCE, Answered, PATIENCE, Unavailable, a_moment, comes_to, comes_to_be_ready, each, not_ready, reason},
    session::Session,
    store::{Store, endpoint, link, settings},
};

fn not_required() -> PostgresSettings {
    PostgresSettings { required_at_start: false, ..settings() }
}

async fn fails_to_start(url: &str, settings: PostgresSettings) -> StartError {
    let started = timeout(PATIENCE, PgStorage::start(endpoint(url), endpoint(url), settings)).await;
    started.expect("it ends").err().expect("it fails")
}

/// It is not ready until it can be used.
async fn starts_without(url: &str, settings: PostgresSettings, mend: impl AsyncFnOnce()) {
    let store = timeout(PATIENCE, Store::at(url, settings)).await.expect("it starts");
    for _ in 0..10 {
        assert_eq!(each(&store.repository, AT_ONCE).await, [Unavailable; 3]);
        assert!(not_ready(&store.storage).await.is_some());
    }
    mend().await;
    comes_to(&store.repository, Answered, PATIENCE).await;
    comes_to_be_ready(&store.storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_named_and_not_shown() {
    let server = PostgresServer::with_password("right");
    let url = server.url("postgres").replace("postgres@", "postgres:wr0ng@");
    let error = fails_to_start(&url, settings()).await;
    let text = reason(&error);
    assert!(text.contains(r#"password authentication failed for user "postgres" (SQLSTATE 28P01)"#), "{text}");
    for text in [text, format!("{error:?}"), format!("{:?}", endpoint(&url))] {
        assert!(!text.contains("wr0ng"), "{text}");
    }
    let mend = async || drop(server.sql("postgres", "ALTER ROLE postgres PASSWORD 'wr0ng'"));
    starts_without(&url, not_required(), mend).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_there_are_too_many_connections_the_next_free_one_is_taken() {
    let server = PostgresServer::with(&["max_connections=5", "superuser_reserved_connections=0"]);
    let url = server.url("postgres");
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(Session::at(&url).await);
    }
    let text = reason(&fails_to_start(&url, settings()).await);
    assert!(text.contains("too many clients already (SQLSTATE 53300)"), "{text}");
    starts_without(&url, not_required(), async || others.clear()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_there_is_no_server_a_start_fails_or_waits_for_one() {
    let mut server = PostgresServer::start();
    let url = server.url("postgres");
    server.stop();
    let text = reason(&fails_to_start(&url, settings()).await);
    assert!(text.contains("Connection refused"), "{text}");
    starts_without(&url, not_required(), async || server.start_again()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_link_that_stands_still_a_start_fails_in_time() {
    let patience = Duration::from_millis(500);
    let database = PgDatabase::new();
    // The server takes the connection; what comes next is never answered. Diesel asks before we do.
    for stuck in ["", "TIME ZONE", "to_regclass"] {
        let (mut link, url) = link(database.url());
        if stuck.is_empty() {
            link.freeze();
        } else {
            link.hold(stuck);
        }
        let start = Instant::now();
        let settings = PostgresSettings { connect_timeout: patience, ..settings() };
        let text = reason(&fails_to_start(&url, settings).await);
        assert!(start.elapsed() < patience * 2 + AT_ONCE, "{stuck}: {:?}", start.elapsed());
        assert!(text.contains("no answer in time"), "{text}");
        link.heal();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_at_the_schema_that_is_not_answered_is_tried_again() {
    let database = PgDatabase::new();
    let (mut link, url) = link(database.url());
    link.hold("to_regclass");
    let settings = PostgresSettings { connect_timeout: Duration::from_millis(300), ..not_required() };
    let mend = async || {
        let start = Instant::now();
        while link.held() < 3 {
            assert!(start.elapsed() < PATIENCE, "it is not tried again");
            a_moment().await;
        }
        link.heal();
    };
    starts_without(&url, settings, mend).await;
}
