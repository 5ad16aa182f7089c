//! However the tables look, when the plan is made and when it is used: what a batch costs grows with the batch alone.

use std::time::Duration;

use animal_store_test_servers::PgDatabase;
use serde_json::Value;
use tokio_postgres::Client;

use super::*;
use crate::{
    Migrations, PgEndpoint,
    endpoint::{Driver, Opened},
    explain::explain,
    group_commit::MAX_BATCH,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// Keys are numbers.
const RECORDS: &str = "
    INSERT INTO idempotency_keys
    SELECT 'shop', decode(lpad(to_hex(n), 64, '0'), 'hex'), '', n, now() + interval '1 hour'
    FROM generate_series(100001, 300000) AS n;
    INSERT INTO pets (name, category_id) SELECT 'Rex', 1 FROM generate_series(1, 200000)";

/// A connection as the one that adds with keys, whose plan is made now.
async fn prepared(database: &PgDatabase) -> (Client, Driver) {
    let endpoint = PgEndpoint::new(&database.url().into()).unwrap();
    let Opened { client, driver } = endpoint.connect(PATIENCE).await.unwrap();
    let types: Vec<_> = KeyedCreate::TYPES.iter().map(Type::name).collect();
    let statement = KeyedCreate::statement(&PostgresSettings::of_tests(PATIENCE));
    let prepare = format!("PREPARE keyed ({}) AS {statement}", types.join(", "));
    client
        .batch_execute(&format!(
            "{}; {prepare}; {}",
            PostgresSettings::of_tests(PATIENCE).statements("SET"),
            execute(1, 1)
        ))
        .await
        .unwrap();
    (client, driver)
}

/// So many, with keys from this one on.
fn execute(from: usize, count: usize) -> String {
    let array = |value: &dyn Fn(usize) -> String| {
        let values: Vec<_> = (from..from + count).map(value).collect();
        format!("'{{{}}}'", values.join(","))
    };
    let one = array(&|_| "1".to_owned());
    let digests = array(&|number| format!(r#""\\x{number:064x}""#));
    let names = array(&|number| format!("n{number}"));
    let shop = array(&|_| "shop".to_owned());
    format!("EXECUTE keyed ({names}, {one}, {one}, {shop}, {digests}, {digests})")
}

fn nodes(plan: &Value) -> Vec<&Value> {
    let below = plan["Plans"].as_array().into_iter().flatten();
    [plan].into_iter().chain(below.flat_map(nodes)).collect()
}

/// Adds a batch, and another time.
async fn costs_what_it_has_to(client: &Client, from: usize) {
    for _ in 0..2 {
        let explained = explain(client, &execute(from, MAX_BATCH)).await;
        assert!(explained["JIT"].is_null(), "{explained:#}");
        for node in nodes(&explained["Plan"]) {
            assert_ne!(node["Node Type"], "Nested Loop", "{explained:#}");
            assert_eq!(node["Actual Loops"].as_f64(), Some(1.0), "{explained:#}");
            assert!(node["Actual Rows"].as_f64().unwrap() <= 1000.0, "{explained:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_tables_look_like_a_batch_costs_what_it_has_to() {
    let database = PgDatabase::new();
    let endpoint = PgEndpoint::new(&database.url().into()).unwrap();
    Migrations::new(endpoint, PATIENCE).run().await.unwrap();
    // Nobody makes the plans anew behind our backs.
    database.sql("ALTER TABLE pets SET (autovacuum_enabled = off)");
    database.sql("ALTER TABLE idempotency_keys SET (autovacuum_enabled = off)");
    let (made_on_empty_tables, _driver) = prepared(&database).await;
    costs_what_it_has_to(&made_on_empty_tables, 1001).await;

    database.sql(RECORDS);
    costs_what_it_has_to(&made_on_empty_tables, 2001).await;
    database.sql("VACUUM ANALYZE pets, idempotency_keys");
    costs_what_it_has_to(&made_on_empty_tables, 3001).await;
    costs_what_it_has_to(&prepared(&database).await.0, 4001).await;
}
