//! What cannot hold up a revocation.

use animal_store_adapter_kit::test_support::wait_for;
use animal_store_app::ports::{ApiKeyUse, ApiKeyUses};
use prometheus_client::registry::Registry;

use crate::{keys::new_keys, prelude::*};

/// The permissions of the instances, as `docs/operations/postgresql.md` has them.
fn documented_grants() -> String {
    let document = include_str!("../../../../docs/operations/postgresql.md");
    let lines = document.lines().map(str::trim);
    let grants = lines.filter(|line| {
        line.starts_with("GRANT") && !line.contains("ON pets TO") && !line.contains("CREATE ON")
    });
    let grants: Vec<_> = grants
        .filter(|line| !line.contains("pets_id_seq"))
        .collect();
    assert_eq!(grants.len(), 6, "{grants:?}");
    grants.join(" ")
}

/// It holds the locks of each table that its permissions allow, and of the rows.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_user_of_the_instances_locks_a_key_can_be_revoked() {
    let (keys, database) = new_keys().await;
    let user = database.user();
    let grants = documented_grants().replace("TO store", &format!("TO {}", user.name));
    database.sql(&grants);
    let instance = api_key_store(endpoint(&user.url), settings());
    let directory = instance.directory();
    keys.add(&["key"]).await;
    wait_for(&directory, "key", true).await;
    let (record, writer) = instance.start_uses(&mut Registry::default());
    record.note(&api_key_id("key"), ApiKeyUse::Request);
    drop(record);
    writer.await.expect("no panic");
    assert_eq!(keys.list_uses().await.expect("uses").last.len(), 1);

    let session = SqlSession::at(&user.url).await;
    session.run("BEGIN").await;
    let tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    let mut held = Vec::new();
    for table in session.column(tables).await {
        for lock in [
            format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"),
            format!("LOCK TABLE {table} IN SHARE MODE"),
            format!("LOCK TABLE {table} IN ROW EXCLUSIVE MODE"),
            format!("LOCK TABLE {table} IN ACCESS SHARE MODE"),
            format!("SELECT FROM {table} FOR UPDATE"),
            format!("SELECT FROM {table} FOR KEY SHARE"),
        ] {
            if session.permits(&lock).await {
                held.push(lock);
            }
        }
    }
    let locks_uses = "LOCK TABLE api_key_uses IN ACCESS EXCLUSIVE MODE";
    assert!(held.iter().any(|lock| lock == locks_uses), "{held:?}");
    for statement in [
        "UPDATE api_key_state SET version = 9000000000",
        "DELETE FROM api_key_marks",
        "SELECT FROM api_key_state FOR UPDATE",
    ] {
        assert!(!session.permits(statement).await, "{statement}");
    }

    let began = Instant::now();
    keys.revoke("key").await;
    assert!(began.elapsed() < settings().timeout);
    assert_eq!(keys.audit_log().await.expect("log").len(), 2);
    wait_for(&directory, "key", false).await;
    // The other changes neither wait for the uses nor hold up a revocation. A list of the uses ends in time.
    let brief = api_key_store(endpoint(database.url()), short_timeout());
    brief.add(&["other"]).await;
    let locked = brief.list_uses().await.expect_err("the uses are locked");
    assert!(reason(&locked).contains("lock timeout"), "{locked:?}");
    session.run("ROLLBACK").await;
    // Its uses stay, and no list has them. A key with this id has none.
    assert!(keys.list_uses().await.expect("uses").last.is_empty());
    keys.add(&["key"]).await;
    assert!(keys.list_uses().await.expect("uses").last.is_empty());
}
