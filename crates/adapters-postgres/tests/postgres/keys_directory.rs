//! Directories of API keys: when a change takes effect, and what they do while PostgreSQL or the primary is away.

use std::time::{Duration, Instant};

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_app::ports::{ApiKeyStore, Readiness};
use animal_store_test_servers::{PgDatabase, PostgresServer};
use prometheus_client::registry::Registry;

use crate::{
    keys_support::{KeySpace, find, wait_for},
    outcomes::{reason, wait_until},
    pooler::{Pooled, pooling},
    sql_session::SqlSession,
    store::{in_both_modes, proxy_to, settings, short_timeout},
};

/// The longest time for which a revoked key is accepted.
const TRUST: Duration = Duration::from_millis(500);

/// The contract suite has the rules. The median leaves out a moment at which the machine is busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_takes_effect_on_another_instance_within_250_ms() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    let directory = keys.directory();
    let mut times = Vec::new();
    for number in 0..9 {
        let (id, token) = (format!("key-{number}"), format!("token-{number}"));
        keys.add(&id, &token).await;
        wait_for(&directory, &token, true).await;
        keys.revoke(&id).await;
        let committed = Instant::now();
        wait_for(&directory, &token, false).await;
        times.push(committed.elapsed());
    }
    times.sort_unstable();
    assert!(times[4] < Duration::from_millis(250), "{times:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_trust_ends_500_ms_after_postgresql_freezes_and_returns_with_it() {
    let server = PostgresServer::start();
    let keys = KeySpace::at(&server.url("postgres"), &server.url("postgres"), short_timeout()).await;
    keys.add("key", "token").await;
    let directory = keys.directory();
    wait_for(&directory, "token", true).await;
    server.pause();
    let frozen = Instant::now();
    loop {
        let began = Instant::now();
        match find(&directory, "token").await {
            Ok(found) => assert!(found.is_some() && began < frozen + TRUST, "{:?}", began - frozen),
            Err(_) => break,
        }
    }
    directory.check().await.expect_err("not ready");
    server.resume();
    wait_for(&directory, "token", true).await;
    directory.check().await.expect("ready");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_was_made_while_the_directory_was_disconnected_is_seen() {
    let database = PgDatabase::new();
    let (mut proxy, url) = proxy_to(database.url());
    let keys = KeySpace::at(&url, database.url(), settings()).await;
    keys.add("revoked", "revoked").await;
    keys.add("kept", "kept").await;
    let directory = keys.directory();
    wait_for(&directory, "revoked", true).await;
    proxy.refuse();
    wait_until("lookups fail", async || find(&directory, "revoked").await.is_err()).await;
    keys.revoke("revoked").await;
    proxy.heal();
    wait_for(&directory, "revoked", false).await;
    assert!(find(&directory, "kept").await.expect("found").is_some());
}

/// After a fail-over to a standby that lacked a change, another change may have its version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_with_the_same_version_is_read_from_the_beginning() {
    let mut server = PostgresServer::start();
    let (mut proxy, url) = proxy_to(&server.url("postgres"));
    let keys = KeySpace::at(&url, &server.url("postgres"), settings()).await;
    keys.add("lost", "lost").await;
    let directory = keys.directory();
    wait_for(&directory, "lost", true).await;
    proxy.refuse();
    server.stop();
    server.start_again();
    server.sql(
        "postgres",
        "UPDATE api_key_tokens SET digest = sha256('other'), api_key_id = 'lost' WHERE api_key_id = 'lost'",
    );
    proxy.heal();
    wait_for(&directory, "other", true).await;
    assert_eq!(find(&directory, "lost").await.expect("found"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_becomes_read_only_is_not_believed() {
    in_both_modes(&settings(), async |settings| {
        let server = PostgresServer::start();
        let keys = KeySpace::at(&server.url("postgres"), &server.url("postgres"), settings).await;
        keys.add("key", "token").await;
        let directory = keys.directory();
        wait_for(&directory, "token", true).await;
        let set = |value: &str| {
            server.sql("postgres", &format!("ALTER SYSTEM SET default_transaction_read_only = {value}"));
            server.sql("postgres", "SELECT pg_reload_conf()");
        };
        set("on");
        wait_until("lookups fail", async || find(&directory, "token").await.is_err()).await;
        set("off");
        wait_for(&directory, "token", true).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_found_as_soon_as_a_postgresql_that_was_away_at_the_start_has_the_schema() {
    let mut server = PostgresServer::start();
    server.stop();
    let url = server.url("postgres");
    let settings = PostgresSettings { required_at_start: false, ..settings() };
    let keys = KeySpace::at(&url, &url, settings).await;
    let directory = keys.directory();
    let failure = find(&directory, "token").await.expect_err("there is no schema");
    assert!(reason(&failure).contains("the schema cannot be used"), "{}", reason(&failure));
    server.start_again();
    wait_for(&directory, "token", false).await;
    keys.add("key", "token").await;
    wait_for(&directory, "token", true).await;
}

/// More keys than a page has, and changes of a few of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_keys_are_read_in_pages() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    database.sql(
        "INSERT INTO api_keys SELECT 'key-' || n, 'label', 'read', n FROM generate_series(1, 12000) n;
        INSERT INTO api_key_tokens SELECT sha256(('token-' || n)::bytea), 'key-' || n, 'last', now()
            FROM generate_series(1, 12000) n;
        UPDATE api_key_state SET version = 12000",
    );
    let directory = keys.directory();
    for number in [1, 5_000, 5_001, 12_000] {
        let found = find(&directory, &format!("token-{number}")).await.expect("found");
        assert_eq!(found.map(|key| key.id.to_string()), Some(format!("key-{number}")));
    }
    let listed = keys.store.list().await.expect("list");
    assert!(listed.len() == 12_000 && listed.is_sorted_by_key(|key| key.key.id.clone()));
    keys.revoke("key-5000").await;
    wait_for(&directory, "token-5000", false).await;
    assert!(find(&directory, "token-5001").await.expect("found").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_is_dropped_has_closed_its_connection() {
    let database = PgDatabase::new();
    let keys = KeySpace::of(&database).await;
    let observer = SqlSession::of(&database).await;
    observer.wait_for_backends(2).await;
    let (directory, end) = keys.storage.start_api_keys(&mut Registry::default());
    directory.check().await.expect("ready");
    observer.wait_for_backends(3).await;
    drop(directory);
    end.await.expect("no panic");
    observer.wait_for_backends(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_pooler_changes_are_followed_and_nothing_is_left_behind() {
    let pooled = Pooled::with(2, pooling()).await;
    let direct = pooled.server.url("postgres");
    let keys = KeySpace::at(&pooled.url(), &direct, pooling()).await;
    let directory = keys.directory();
    keys.add("key", "token").await;
    wait_for(&directory, "token", true).await;
    keys.revoke("key").await;
    wait_for(&directory, "token", false).await;
    drop((directory, keys));
    pooled.leaves_nothing_behind().await;
}
