//! Expired idempotency keys.

use crate::prelude::*;

fn settings_with(idempotency_retention: Duration) -> SqliteSettings {
    SqliteSettings {
        idempotency_retention,
        ..settings()
    }
}

#[tokio::test]
async fn expired_keys_are_deleted_and_others_are_kept() {
    let store = Store::with(settings_with(Duration::from_millis(400)));
    store.execute(
        "INSERT INTO idempotency_keys
        WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 2500)
        SELECT 'old', CAST(n AS BLOB), x'00', n, n FROM number;
        INSERT INTO idempotency_keys VALUES ('new', x'01', x'00', 1, 9999999999999);",
    );
    let added = store.repository.add(request("Rex")).await;
    added.expect("added");
    let count = |rows| store.number(&format!("SELECT count(*) FROM {rows}"));
    let is_swept = async || count("idempotency_keys") == 1;
    wait_until("expired keys are deleted", is_swept).await;
    assert_eq!(count("idempotency_keys WHERE api_key_id = 'new'"), 1);
}

/// Neither a start nor a create brings a sweep forward.
#[tokio::test]
async fn a_sweep_comes_a_quarter_of_the_retention_after_the_one_before() {
    let (_folder, path) = closed_file();
    let add_expired = || {
        let expired = "INSERT INTO idempotency_keys VALUES ('old', x'01', x'00', 1, 1)";
        sql::execute(&path, expired);
    };
    add_expired();
    let start = Instant::now();
    let retention = Duration::from_secs(2);
    let store = Store::over(open(&path), settings_with(retention));
    for sweeps in 1..=2 {
        store.add("Rex").await;
        let is_swept = async || sql::number(&path, "SELECT count(*) FROM idempotency_keys") == 0;
        wait_until("the key is deleted", is_swept).await;
        assert!(start.elapsed() >= sweeps * retention / 4);
        add_expired();
    }
}
