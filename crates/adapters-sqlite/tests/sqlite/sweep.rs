//! Expired idempotency keys.

use std::time::{Duration, Instant};

use animal_store_adapters_sqlite::SqliteSettings;
use animal_store_app::{
    IdempotencyKey,
    ports::{AddPet, PetRepository},
    test_support::{api_key_id, new_pet},
};

use crate::{
    sql,
    store::{Store, settings, wait_until},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_keys_are_deleted_and_others_are_kept() {
    let retention = Duration::from_millis(400);
    let store = Store::with(SqliteSettings {
        idempotency_retention: retention,
        ..settings()
    });
    sql::execute(
        &store.path(),
        "INSERT INTO idempotency_keys
        WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 2500)
        SELECT 'old', CAST(n AS BLOB), x'00', n, n FROM number;
        INSERT INTO idempotency_keys VALUES ('new', x'01', x'00', 1, 9999999999999);",
    );
    let idempotency_key = Some(IdempotencyKey::new(api_key_id("shop"), "1"));
    store
        .repository
        .add(AddPet {
            pet: new_pet(),
            idempotency_key,
        })
        .await
        .expect("added");
    let count = || sql::number(&store.path(), "SELECT count(*) FROM idempotency_keys");
    wait_until("expired keys are deleted", async || count() == 1).await;
    assert_eq!(
        sql::number(
            &store.path(),
            "SELECT count(*) FROM idempotency_keys WHERE api_key_id = 'new'"
        ),
        1
    );
}

/// Neither a start nor a create brings a sweep forward.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_comes_a_quarter_of_the_retention_after_the_one_before() {
    let store = Store::new();
    let path = store.path();
    let folder = store.close().await;
    let add_expired = || {
        sql::execute(
            &path,
            "INSERT INTO idempotency_keys VALUES ('old', x'01', x'00', 1, 1)",
        );
    };
    add_expired();
    let (start, retention) = (Instant::now(), Duration::from_secs(2));
    let store = Store::at(
        folder,
        SqliteSettings {
            idempotency_retention: retention,
            ..settings()
        },
    );
    for sweeps in 1..=2 {
        store.add("Rex").await;
        wait_until("the key is deleted", async || {
            sql::number(&path, "SELECT count(*) FROM idempotency_keys") == 0
        })
        .await;
        assert!(
            start.elapsed() >= sweeps * retention / 4,
            "{:?}",
            start.elapsed()
        );
        add_expired();
    }
}
