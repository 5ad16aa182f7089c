//! Snapshots: they are read by index scans, and no pause between two pages ends them.

use animal_store_app::{ports::BulkStorage, test_support::stored_pets};
use animal_store_domain::PetId;

use crate::{
    bulk_fixture::bulk_with,
    explain::{empty_tables, explain, nodes, session, settings_and_statement, trap},
    outcomes::{eventually, reason},
    sql_session::SqlSession,
    store::{few_seconds, settings, with_option},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_between_two_pages_ends_no_snapshot() {
    let database = empty_tables().await;
    let settings = few_seconds();
    let timeout = settings.timeout;
    for setting in ["statement_timeout", "idle_in_transaction_session_timeout"] {
        database.sql(&format!("ALTER DATABASE {} SET {setting} = {}", database.name(), timeout.as_millis()));
    }
    let observer = SqlSession::of(&database).await;
    let bulk = bulk_with(database.url(), settings);
    bulk.add_pets(stored_pets([1, 2])).await.expect("added");
    let snapshot = bulk.snapshot().await.expect("a snapshot");
    let after = |id| Some(PetId::parse(id).expect("an id"));
    assert_eq!(snapshot.pets(after(1), 1).await.expect("a page").len(), 1);
    let pause = format!("interval '{} ms'", timeout.as_millis());
    let paused = format!("pg_stat_activity WHERE xact_start + {pause} < now() AND state_change + {pause} < now()");
    let ours = "datname = current_database() AND application_name LIKE 'animal-store%'";
    eventually("the pause is longer than the timeouts", async || {
        observer.count(&format!("{paused} AND {ours}")).await == 1
    })
    .await;
    assert_eq!(snapshot.pets(after(2), 1).await.expect("a page").len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_is_an_index_scan() {
    let database = empty_tables().await;
    database.sql(
        "INSERT INTO pets (name, category_id) SELECT 'Rex', 1 FROM generate_series(1, 10000);
        INSERT INTO idempotency_keys
        SELECT 'shop', decode(lpad(to_hex(n), 64, '0'), 'hex'), '', n, now() + interval '1 hour'
        FROM generate_series(1, 10000) AS n; ANALYZE",
    );
    for (table, parameters, values) in
        [("pets", "bigint, bigint", "5000, 10"), ("idempotency_keys", "text, bytea, bigint", "'shop', '\\x00', 10")]
    {
        database.sql(&trap(table));
        let trapped = bulk_with(&with_option(database.url(), "options=-c%20search_path%3Dtrap,public"), settings());
        let snapshot = trapped.snapshot().await.expect("a snapshot");
        let error = match table {
            "pets" => snapshot.pets(None, 10).await.expect_err("trapped"),
            _ => snapshot.idempotency_records(None, 10).await.expect_err("trapped"),
        };
        let (_, statement) = settings_and_statement(&reason(&error));
        let client = session(&database).await;
        client.batch_execute(&format!("PREPARE page ({parameters}) AS {statement}")).await.expect("prepared");
        let plan = explain(&client, &format!("EXECUTE page ({values})")).await;
        let found: Vec<_> = nodes(&plan["Plan"]).iter().filter_map(|node| node["Node Type"].as_str()).collect();
        assert_eq!(found, ["Limit", "Index Scan"], "{plan:#}");
        assert_eq!(plan["Plan"]["Plans"][0]["Actual Rows"].as_f64(), Some(10.0), "{plan:#}");
    }
}
