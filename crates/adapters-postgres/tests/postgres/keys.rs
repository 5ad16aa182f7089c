//! API keys in a database: what other processes, other servers and lost connections do to them. `contract.rs` has the
//! rules of the ports and of the store.

use std::sync::Mutex;

use animal_store_adapter_kit::{
    ApiKeySnapshot, ApiKeyUseRecord,
    test_support::{find, is_accepted, wait_for},
};
use animal_store_adapters_postgres::PgApiKeyStore;
use animal_store_app::{
    ports::{ApiKeyUse, ApiKeyUses},
    test_support::{
        failures::{UNAVAILABLE, UNKNOWN, assert_fails},
        key_changes,
    },
};
use prometheus_client::registry::Registry;
use tokio::task::yield_now;
use tracing::subscriber::set_default;
use tracing_subscriber::fmt::MakeWriter;

use crate::{prelude::*, store::cut_when_held};

/// Longest time for which keys are trusted, whatever delays the next comparison.
const TRUST: Duration = Duration::from_millis(500);

pub(crate) async fn keys_of(url: &str, settings: PostgresSettings) -> PgApiKeyStore {
    migrations(url).run().await.expect("the tables");
    api_key_store(endpoint(url), settings)
}

pub(crate) async fn new_keys() -> (PgApiKeyStore, PgDatabase) {
    let database = PgDatabase::new();
    (keys_of(database.url(), settings()).await, database)
}

/// Waits until a token is not accepted, which takes no longer than keys are trusted.
async fn ends_in_time(directory: &ApiKeySnapshot, token: &str) {
    let start = Instant::now();
    let mut used = start;
    while find(directory, token).await.is_ok_and(|key| key.is_some()) {
        assert!(used - start < TRUST, "it is accepted for too long");
        yield_now().await;
        used = Instant::now();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_responses_the_keys_are_trusted_for_a_moment_only() {
    let server = PostgresServer::start();
    let keys = keys_of(&server.url(), few_seconds()).await;
    let directory = keys.directory();
    keys.add(&["key"]).await;
    wait_for(&directory, "key", true).await;
    server.pause();
    ends_in_time(&directory, "key").await;
    find(&directory, "key").await.expect_err("no response");
    server.resume();
    wait_for(&directory, "key", true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_a_directory_missed_is_seen_when_it_is_connected_again() {
    in_both_modes(&settings(), async |settings| {
        let database = PgDatabase::new();
        let direct = keys_of(database.url(), settings.clone()).await;
        let (mut proxy, url) = proxy_to(database.url());
        let directory = api_key_store(endpoint(&url), settings).directory();
        direct.add(&["kept", "revoked"]).await;
        wait_for(&directory, "revoked", true).await;
        proxy.refuse();
        let fails = async || find(&directory, "kept").await.is_err();
        wait_until("lookups fail", fails).await;
        direct.revoke("revoked").await;
        proxy.heal();
        wait_for(&directory, "kept", true).await;
        assert!(!is_accepted(&directory, "revoked").await);
    })
    .await;
}

/// Otherwise the greater version could be visible first, and a directory would never read the other change.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_waits_for_the_commit_of_the_change_before_it() {
    let (keys, database) = new_keys().await;
    let directory = keys.directory();
    let other = SqlSession::of(&database).await;
    let first = "BEGIN; UPDATE api_key_state SET version = version + 1;
        INSERT INTO api_keys SELECT 'first', 'first', 'read', version FROM api_key_state;
        INSERT INTO api_key_tokens VALUES (sha256('first'), 'first', 'last', 0)";
    other.run(first).await;
    let second = tokio::spawn(async move { keys.add(&["second"]).await });
    let observer = SqlSession::of(&database).await;
    observer.wait_for_locks("transactionid", 1).await;
    assert!(!is_accepted(&directory, "second").await);

    other.run("COMMIT").await;
    second.await.expect("no panic");
    wait_for(&directory, "second", true).await;
    assert!(is_accepted(&directory, "first").await);
    let versions = database.sql("SELECT id, version FROM api_keys ORDER BY version");
    assert_eq!(versions, "first|1\nsecond|2");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_change_whose_commit_has_no_response_has_an_unknown_outcome() {
    let (keys, database) = new_keys().await;
    // A statement, the commit, or the response to it.
    for (id, text, failure, listed) in [
        ("a", "INSERT INTO api_keys", UNAVAILABLE, 0),
        ("b", "COMMIT\0", UNKNOWN, 0),
        ("c", "COMMIT\0Z", UNKNOWN, 1),
    ] {
        let (mut proxy, url) = proxy_to(database.url());
        let store = api_key_store(endpoint(&url), settings());
        proxy.hold(text);
        let change = key_changes::add(id, id, None);
        let changed = cut_when_held(&proxy, store.change(change, "test")).await;
        assert_fails(changed, failure);
        // It waits for the end of the transaction that was cut.
        keys.add(&["next"]).await;
        keys.revoke("next").await;
        assert_eq!(keys.list().await.expect("list").len(), listed, "{text}");
        proxy.heal();
        // The same store connects again.
        store.add(&["same"]).await;
        keys.revoke("same").await;
    }
    // A read changes nothing.
    let (proxy, url) = proxy_to(database.url());
    let store = api_key_store(endpoint(&url), settings());
    proxy.hold("COMMIT\0");
    let listed = cut_when_held(&proxy, store.list()).await;
    assert_fails(listed, UNAVAILABLE);
}

/// As by `idle_session_timeout`. One thread notices the ends of connections in their order: when it has noticed that of a
/// later session, it has noticed that of the kept connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_kept_connection_that_the_server_has_ended_fails_no_change() {
    let (keys, database) = new_keys().await;
    keys.add(&["a"]).await;
    let observer = SqlSession::of(&database).await;
    observer.end_backends().await;
    let later = SqlSession::of(&database).await;
    let end = "SELECT pg_terminate_backend(pg_backend_pid())";
    later.batch_execute(end).await.expect_err("it ends");
    wait_until("its end", async || later.is_closed()).await;
    keys.add(&["b"]).await;
}

/// Its repetition finds no key, and is not recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_with_an_unknown_outcome_is_logged() {
    let (keys, database) = new_keys().await;
    keys.add(&["a"]).await;
    let (proxy, url) = proxy_to(database.url());
    let store = api_key_store(endpoint(&url), settings());
    let log: &Mutex<Vec<u8>> = Box::leak(Box::default());
    let subscriber = tracing_subscriber::fmt().with_writer(move || log.make_writer());
    let _guard = set_default(subscriber.finish());
    proxy.hold("COMMIT\0Z");
    let revoked = store.change(key_changes::revoke("a"), "test");
    assert_fails(cut_when_held(&proxy, revoked).await, UNKNOWN);
    assert_eq!(keys.list().await.expect("list"), []);
    let log = log.lock().expect("no panic");
    let log = String::from_utf8_lossy(&log);
    let count = log.matches("the revocation is not recorded").count();
    assert_eq!(count, 1, "{log}");
}

/// After a fail-over to a standby that lacked a change, another change may have its version.
#[tokio::test(flavor = "multi_thread")]
async fn another_server_with_the_same_version_is_read_from_the_beginning() {
    let mut server = PostgresServer::start();
    let (mut proxy, url) = proxy_to(&server.url());
    let direct = keys_of(&server.url(), settings()).await;
    let directory = api_key_store(endpoint(&url), settings()).directory();
    direct.add(&["lost"]).await;
    wait_for(&directory, "lost", true).await;
    proxy.refuse();
    server.stop();
    server.start_again();
    let other = "UPDATE api_key_tokens SET digest = sha256('other')";
    server.sql(other);
    proxy.heal();
    wait_for(&directory, "other", true).await;
    assert!(!is_accepted(&directory, "lost").await);
}

/// A statement for all of them would take too long.
#[tokio::test(flavor = "multi_thread")]
async fn the_uses_of_many_keys_are_all_written() {
    let (keys, database) = new_keys().await;
    database.sql(
        "INSERT INTO api_keys SELECT 'key-' || n, 'x', 'read', 1 FROM generate_series(1, 2500) AS n;
        INSERT INTO api_key_tokens SELECT sha256(id::bytea), id, 'abcd', 0, NULL FROM api_keys",
    );
    let registry = &mut Registry::default();
    let (uses, writer) = ApiKeyUseRecord::start(keys.uses(), 10_000, TRUST, registry);
    for number in 1..=2500 {
        uses.note(&api_key_id(&format!("key-{number}")), ApiKeyUse::Request);
    }
    drop(uses);
    writer.await.expect("no panic");
    assert_eq!(keys.list_uses().await.expect("uses").last.len(), 2500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_only_read_is_told_what_is_missing() {
    let (keys, database) = new_keys().await;
    let user = user_with(&database, &[READ]);
    let reader = api_key_store(endpoint(&user.url), settings());
    let cause = assert_fails(reader.check_writable().await, UNAVAILABLE);
    let advice = format!("GRANT DELETE, INSERT ON api_key_tokens TO {}", user.name);
    assert!(cause.contains(&advice), "{cause}");
    let add = key_changes::add("key", "token", None);
    assert_fails(reader.change(add, "test").await, UNAVAILABLE);
    keys.check_writable().await.expect("the owner may write");
}

/// The permissions before the migration that adds the marks, in a rolling upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_permission_on_the_marks_changes_are_seen() {
    let (keys, database) = new_keys().await;
    let read = "SELECT ON api_keys, api_key_tokens, api_key_state";
    let user = user_with(&database, &[read]);
    let directory = api_key_store(endpoint(&user.url), settings()).directory();
    keys.add(&["a", "b"]).await;
    wait_for(&directory, "b", true).await;
    keys.revoke("a").await;
    wait_for(&directory, "a", false).await;
    assert!(is_accepted(&directory, "b").await);
}
