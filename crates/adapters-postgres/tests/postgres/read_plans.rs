//! A page reads its own rows and no others, whatever the table contains when its plan is made and when it is used.
//!
//! The table has 200,000 pets: 50 are pending, evenly spread, the last 50 are sold, and all others are available.

use animal_store_app::ports::PetRepository;
use animal_store_domain::PetStatus;
use animal_store_test_servers::PgDatabase;
use serde_json::Value;
use tokio_postgres::Client;

use crate::{
    explain::{PLAN_SETTINGS, empty_tables, explain, one_connection, session, settings_and_statement, trapped},
    outcomes::{find, reason},
    store::in_both_modes,
};

/// The largest page and one more, as a list queries it.
const LIMIT: i64 = 101;

/// Pages of an index above and between its leaves, and of the table if the pages of neighbours are not adjacent.
const OTHER_BUFFERS: i64 = 10;

const ROWS: &str = "
    INSERT INTO pets (id, name, category_id, status)
    SELECT n, 'Rex', 1, CASE WHEN n > 199950 THEN 3 WHEN n % 4000 = 0 THEN 2 ELSE 1 END
    FROM generate_series(1, 200000) AS n";

/// The statement that a programmer would write at first.
const NAIVE: &str = "
    PREPARE naive (smallint, bigint, bigint) AS
        SELECT id, name, category_id, status FROM pets WHERE status = $1 AND id > $2 ORDER BY id LIMIT $3;
    EXECUTE naive (3, 0, 101)";

/// A statement of the adapter: name, types of its parameters, index that it has to use, and values for the first use.
const STATEMENTS: [[&str; 4]; 3] = [
    ["list", "bigint, bigint", "pets_pkey", "0, 101"],
    ["list_of_status", "smallint, smallint, bigint, bigint", "pets_status_id", "3, 3, 0, 101"],
    ["find", "bigint, bigint", "pets_pkey", "1, 1"],
];

/// Returns the statements of the adapter, in the order of [`STATEMENTS`].
async fn captured_statements(database: &PgDatabase) -> [String; 3] {
    let store = trapped(database, one_connection()).await;
    let list = store.repository.list(None, None, 101).await.expect_err("trapped");
    let list_of_status = store.repository.list(Some(PetStatus::Sold), None, 101).await.expect_err("trapped");
    let find = find(&store.repository, 1).await.expect_err("trapped");
    [list, list_of_status, find].map(|error| settings_and_statement(&reason(&error)).1)
}

/// A session with the prepared statements of the adapter. PostgreSQL makes a plan at the first use, which is now.
async fn prepared(database: &PgDatabase, statements: &[String; 3]) -> Client {
    let client = session(database).await;
    for ([name, types, _, values], statement) in STATEMENTS.iter().zip(statements) {
        let prepare = format!("PREPARE {name} ({types}) AS {statement}; EXECUTE {name} ({values})");
        client.batch_execute(&prepare).await.expect("prepared");
    }
    client
}

/// Newer servers have decimals for some numbers.
#[expect(clippy::cast_possible_truncation, reason = "rows and buffers are counted")]
fn number(plan: &Value, name: &str) -> i64 {
    plan[name].as_f64().unwrap_or_default() as i64
}

fn rows_read(scan: &Value) -> i64 {
    ["Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"]
        .iter()
        .map(|name| number(scan, name))
        .sum()
}

/// The nodes below the limit of a plan. A plan with a sort or a bitmap has more than one.
fn scans(plan: &Value) -> Vec<Value> {
    let below = plan["Plans"].as_array().cloned().unwrap_or_default();
    if plan["Node Type"] == "Limit" {
        below.iter().flat_map(scans).collect()
    } else {
        [plan.clone()].into_iter().chain(below).collect()
    }
}

async fn reads_only_its_own_rows(client: &Client, [name, _, index, _]: [&str; 4], values: &str, count: i64) {
    let plan = explain(client, &format!("EXECUTE {name} ({values})")).await["Plan"].clone();
    assert_eq!(number(&plan, "Actual Rows"), count, "{name} {values}: {plan:#}");
    let scans = scans(&plan);
    let [scan] = &scans[..] else { panic!("{name} {values}: {plan:#}") };
    assert_eq!(scan["Node Type"], "Index Scan", "{name} {values}: {plan:#}");
    assert_eq!(scan["Index Name"], index, "{name} {values}: {plan:#}");
    assert!(rows_read(scan) <= count, "{name} {values}: {plan:#}");
    let buffers = number(&plan, "Shared Hit Blocks") + number(&plan, "Shared Read Blocks");
    assert!(buffers <= count + OTHER_BUFFERS, "{name} {values}: {plan:#}");
}

async fn every_page_is_an_index_scan(client: &Client) {
    let [list, list_of_status, find] = STATEMENTS;
    for (after, count) in [(0, LIMIT), (100_000, LIMIT), (199_990, 10), (200_000, 0)] {
        reads_only_its_own_rows(client, list, &format!("{after}, {LIMIT}"), count).await;
    }
    for (status, after, count) in [
        (1, 0, LIMIT),
        (1, 100_000, LIMIT),
        (1, 199_940, 10),
        (2, 0, 49),
        (2, 100_000, 24),
        (2, 199_900, 0),
        (3, 0, 50),
        (3, 199_990, 10),
        (4, 0, 0),
        (0, 0, 0),
    ] {
        reads_only_its_own_rows(client, list_of_status, &format!("{status}, {status}, {after}, {LIMIT}"), count).await;
    }
    for (id, count) in [(100_000, 1), (200_001, 0)] {
        reads_only_its_own_rows(client, find, &format!("{id}, {id}"), count).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_is_an_index_scan_whatever_the_table_contains() {
    let database = empty_tables().await;
    let statements = captured_statements(&database).await;
    let of_empty_table = prepared(&database, &statements).await;
    database.sql(ROWS);
    every_page_is_an_index_scan(&of_empty_table).await;
    every_page_is_an_index_scan(&prepared(&database, &statements).await).await;

    database.sql("VACUUM ANALYZE pets");
    every_page_is_an_index_scan(&of_empty_table).await;
    let client = prepared(&database, &statements).await;
    every_page_is_an_index_scan(&client).await;

    // The naive statement walks along the other index, and finds the sold pets behind all others.
    client.batch_execute(NAIVE).await.expect("prepared");
    let plan = explain(&client, "EXECUTE naive (3, 0, 101)").await["Plan"].clone();
    assert!(rows_read(&scans(&plan)[0]) > 100 * LIMIT, "{plan:#}");

    // PostgreSQL plans for ten pages if a table is empty, but plans a full scan for a table of one row.
    database.sql("TRUNCATE pets");
    database.sql("INSERT INTO pets (id, name, category_id, status) VALUES (1, 'Rex', 1, 1)");
    database.sql("ANALYZE pets");
    let of_single_row = prepared(&database, &statements).await;
    database.sql("DELETE FROM pets");
    database.sql(ROWS);
    every_page_is_an_index_scan(&of_single_row).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_read_has_the_plan_settings() {
    in_both_modes(&one_connection(), async |settings| {
        let database = empty_tables().await;
        let store = trapped(&database, settings).await;
        for _ in 0..2 {
            let error = find(&store.repository, 1).await.expect_err("trapped");
            assert_eq!(settings_and_statement(&reason(&error)).0, PLAN_SETTINGS);
        }
    })
    .await;
}
