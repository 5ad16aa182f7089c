//! API keys in a database: what other processes and lost connections do to them. `contract.rs` has the rules of ports.

use std::time::{Duration, Instant};

use animal_store_adapter_kit::{ApiKeySnapshot, ApiKeyUseRecord};
use animal_store_adapters_postgres::{PgApiKeyStore, PostgresSettings, api_key_store};
use animal_store_app::{
    ApiKeyDigest,
    ports::{ApiKeyChangeError, ApiKeyDirectory, ApiKeyStore, ApiKeyUse, ApiKeyUses, StoreFailure},
    test_support::{
        api_key,
        key_changes::{add, revoke},
    },
};
use animal_store_test_servers::{PgDatabase, PostgresServer};
use prometheus_client::registry::Registry;

use crate::{
    outcomes::wait_until,
    sql_session::SqlSession,
    store::{
        cut_when_held, endpoint, in_both_modes, migrations, proxy_to, settings, short_timeout,
    },
};

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

pub(crate) fn directory_of(keys: &PgApiKeyStore) -> ApiKeySnapshot {
    keys.start_directory(&mut Registry::default()).0
}

pub(crate) async fn is_accepted(
    directory: &ApiKeySnapshot,
    token: &str,
) -> Result<bool, StoreFailure> {
    Ok(directory
        .find(ApiKeyDigest::of(&token.into()))
        .await?
        .is_some())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_revoked_elsewhere_is_refused_in_time() {
    in_both_modes(&settings(), async |settings| {
        let database = PgDatabase::new();
        let [here, elsewhere] =
            [settings.clone(), settings].map(|settings| keys_of(database.url(), settings));
        let (here, elsewhere) = (here.await, elsewhere.await);
        let directory = directory_of(&here);
        for round in 0..3 {
            let token = format!("token-{round}");
            elsewhere
                .change(add("key", &token, None), "test")
                .await
                .expect("added");
            wait_until("it is accepted", async || {
                is_accepted(&directory, &token).await.expect("found")
            })
            .await;
            elsewhere
                .change(revoke("key"), "test")
                .await
                .expect("revoked");
            let revoked = Instant::now();
            let mut used = revoked;
            while is_accepted(&directory, &token).await.expect("found") {
                assert!(used - revoked < TRUST, "it is accepted for too long");
                tokio::task::yield_now().await;
                used = Instant::now();
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_responses_the_keys_are_trusted_for_a_moment_only() {
    let server = PostgresServer::start();
    let keys = keys_of(&server.url("postgres"), short_timeout()).await;
    keys.change(add("key", "token", None), "test")
        .await
        .expect("added");
    let directory = directory_of(&keys);
    assert!(is_accepted(&directory, "token").await.expect("found"));
    server.pause();
    let paused = Instant::now();
    let mut used = paused;
    while is_accepted(&directory, "token").await.is_ok() {
        assert!(used - paused < TRUST, "it is accepted for too long");
        tokio::task::yield_now().await;
        used = Instant::now();
    }
    server.resume();
    wait_until("it is accepted again", async || {
        is_accepted(&directory, "token")
            .await
            .is_ok_and(|found| found)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_a_directory_missed_is_seen_when_it_is_connected_again() {
    in_both_modes(&settings(), async |settings| {
        let database = PgDatabase::new();
        let direct = keys_of(database.url(), settings.clone()).await;
        let (mut proxy, url) = proxy_to(database.url());
        let directory = directory_of(&keys_of(&url, settings).await);
        for (id, token) in [("kept", "kept-token"), ("revoked", "revoked-token")] {
            direct
                .change(add(id, token, None), "test")
                .await
                .expect("added");
            wait_until(id, async || {
                is_accepted(&directory, token).await.expect("found")
            })
            .await;
        }
        proxy.refuse();
        wait_until("lookups fail", async || {
            is_accepted(&directory, "kept-token").await.is_err()
        })
        .await;
        direct
            .change(revoke("revoked"), "test")
            .await
            .expect("revoked");
        proxy.heal();
        wait_until("lookups succeed", async || {
            is_accepted(&directory, "kept-token").await.is_ok()
        })
        .await;
        assert!(
            !is_accepted(&directory, "revoked-token")
                .await
                .expect("found")
        );
    })
    .await;
}

/// Otherwise the greater version could be visible first, and a directory would never read the other change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_waits_for_the_commit_of_the_change_before_it() {
    let (keys, database) = new_keys().await;
    let (directory, other) = (directory_of(&keys), SqlSession::of(&database).await);
    other
        .run("BEGIN; UPDATE api_key_state SET version = version + 1")
        .await;
    other
        .run("INSERT INTO api_keys SELECT 'first', 'first', 'read', version FROM api_key_state")
        .await;
    other
        .run("INSERT INTO api_key_tokens VALUES (sha256('first'), 'first', 'last', 0)")
        .await;
    let second =
        tokio::spawn(async move { keys.change(add("second", "second", None), "test").await });
    SqlSession::of(&database)
        .await
        .wait_for_locks("transactionid", 1)
        .await;
    assert!(!is_accepted(&directory, "second").await.expect("found"));

    other.run("COMMIT").await;
    second.await.expect("no panic").expect("added");
    wait_until("the second", async || {
        is_accepted(&directory, "second").await.expect("found")
    })
    .await;
    assert!(is_accepted(&directory, "first").await.expect("found"));
    assert_eq!(
        database.sql("SELECT id, version FROM api_keys ORDER BY version"),
        "first|1\nsecond|2"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_change_whose_commit_has_no_response_has_an_unknown_outcome() {
    let (keys, database) = new_keys().await;
    // A statement, the commit, or the response to it.
    for (id, text, is_known, listed) in [
        ("a", "INSERT INTO api_keys", true, 0),
        ("b", "COMMIT\0", false, 0),
        ("c", "COMMIT\0Z", false, 1),
    ] {
        let (mut proxy, url) = proxy_to(database.url());
        let store = api_key_store(endpoint(&url), settings());
        proxy.hold(text);
        let changed = cut_when_held(&proxy, store.change(add(id, id, None), "test")).await;
        let Err(ApiKeyChangeError::Store(failure)) = changed else {
            panic!("{changed:?}")
        };
        assert_eq!(
            matches!(failure, StoreFailure::Unavailable(_)),
            is_known,
            "{failure:?}"
        );
        assert_eq!(
            matches!(failure, StoreFailure::OutcomeUnknown(_)),
            !is_known,
            "{failure:?}"
        );
        // It waits for the end of the transaction that was cut.
        keys.change(add("next", "next", None), "test")
            .await
            .expect("added");
        keys.change(revoke("next"), "test").await.expect("revoked");
        assert_eq!(keys.list().await.expect("list").len(), listed, "{text}");
        proxy.heal();
        store
            .change(add("same", "same", None), "test")
            .await
            .expect("the same store connects again");
        keys.change(revoke("same"), "test").await.expect("revoked");
    }
    // A read changes nothing.
    let (proxy, url) = proxy_to(database.url());
    let store = api_key_store(endpoint(&url), settings());
    proxy.hold("COMMIT\0");
    let listed = cut_when_held(&proxy, store.list()).await;
    assert!(
        matches!(listed, Err(StoreFailure::Unavailable(_))),
        "{listed:?}"
    );
}

/// After a fail-over to a standby that lacked a change, another change may have its version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_with_the_same_version_is_read_from_the_beginning() {
    let mut server = PostgresServer::start();
    let (mut proxy, url) = proxy_to(&server.url("postgres"));
    let direct = keys_of(&server.url("postgres"), settings()).await;
    let directory = directory_of(&api_key_store(endpoint(&url), settings()));
    direct
        .change(add("lost", "lost", None), "test")
        .await
        .expect("added");
    wait_until("it is accepted", async || {
        is_accepted(&directory, "lost").await.expect("found")
    })
    .await;
    proxy.refuse();
    server.stop();
    server.start_again();
    server.sql(
        "postgres",
        "UPDATE api_key_tokens SET digest = sha256('other')",
    );
    proxy.heal();
    wait_until("the other", async || {
        is_accepted(&directory, "other")
            .await
            .is_ok_and(|found| found)
    })
    .await;
    assert!(!is_accepted(&directory, "lost").await.expect("found"));
}

/// A statement for all of them would take too long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_uses_of_many_keys_are_all_written() {
    let (keys, database) = new_keys().await;
    let add = "INSERT INTO api_keys SELECT 'key-' || n, 'x', 'read', 1 FROM generate_series(1, 2500) AS n;
        INSERT INTO api_key_tokens SELECT sha256(id::bytea), id, 'abcd', 0, NULL FROM api_keys";
    database.sql(add);
    let (uses, writer) =
        ApiKeyUseRecord::start(keys.clone(), 10_000, TRUST, &mut Registry::default());
    for number in 1..=2500 {
        uses.note(&api_key(&format!("key-{number}")).id, ApiKeyUse::Request);
    }
    drop(uses);
    writer.await.expect("no panic");
    assert_eq!(keys.list_uses().await.expect("uses").last.len(), 2500);
}

/// Another test of the commit is that of a copy, which uses the same connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_only_read_is_told_what_is_missing() {
    let (keys, database) = new_keys().await;
    let user = database.user();
    database.sql(&format!(
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}",
        user.name
    ));
    let reader = api_key_store(endpoint(&user.url), settings());
    let Err(StoreFailure::Unavailable(cause)) = reader.check_writable().await else {
        panic!("it may not write")
    };
    let advice = format!("GRANT DELETE, INSERT ON api_key_tokens TO {}", user.name);
    assert!(cause.to_string().contains(&advice), "{cause}");
    let changed = reader.change(add("key", "token", None), "test").await;
    assert!(
        matches!(
            changed,
            Err(ApiKeyChangeError::Store(StoreFailure::Unavailable(_)))
        ),
        "{changed:?}"
    );
    keys.check_writable().await.expect("the owner may write");
}

/// The permissions before the migration of the marks, in a rolling upgrade.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_permission_on_the_marks_changes_are_seen() {
    let (keys, database) = new_keys().await;
    let user = database.user();
    database.sql(&format!(
        "GRANT SELECT ON api_keys, api_key_tokens, api_key_state TO {}",
        user.name
    ));
    let directory = directory_of(&api_key_store(endpoint(&user.url), settings()));
    let is_found = async |id| is_accepted(&directory, id).await.expect("found");
    for id in ["a", "b"] {
        keys.change(add(id, id, None), "test").await.expect("added");
        wait_until("it is accepted", async || is_found(id).await).await;
    }
    keys.change(revoke("a"), "test").await.expect("revoked");
    wait_until("it is refused", async || !is_found("a").await).await;
    assert!(is_found("b").await);
}
