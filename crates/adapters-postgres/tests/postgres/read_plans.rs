//! A read reads its own rows and no others, whatever the table contains when its plan is made and when it is used.
//!
//! The table has 200,000 pets: 50 are pending, evenly spread, the last 50 are sold, and all others are available.

use crate::{
    explain::{
        PLAN_SETTINGS, buffers, explain, nodes, number, rows_read, session, settings_and_statement,
        trapped,
    },
    prelude::*,
    read_fixture::{KINDS, ReadFixture, pets},
};

/// The largest page and one more, as a list queries it.
const LIMIT: i64 = 101;

/// Pages of an index above and between its leaves, and of the table if the pages of neighbours are not adjacent.
const OTHER_BUFFERS: i64 = 10;

const ROWS: &str = "
    INSERT INTO pets (id, name, category_id, status)
    SELECT n, 'Rex', 1, CASE WHEN n > 199950 THEN 3 WHEN n % 4000 = 0 THEN 2 ELSE 1 END
    FROM generate_series(1, 200000) AS n";

/// A statement of the adapter: name, types of its parameters, and values for the first use.
const STATEMENTS: [[&str; 3]; 5] = [
    ["list", "bigint, bigint", "0, 101"],
    ["list_by_status", "smallint, bigint, bigint", "3, 0, 101"],
    ["gets", "bigint[]", "'{1}'"],
    ["lists", "bigint[], bigint[]", "'{0}', '{101}'"],
    [
        "lists_by_status",
        "bigint[], bigint[], smallint[]",
        "'{0}', '{101}', '{3}'",
    ],
];

/// Statuses, positions, and the numbers of pets behind them up to [`LIMIT`].
const LISTS_BY_STATUS: [(i16, i64, i64); 10] = [
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
];
const LISTS: [(i64, i64); 4] = [(0, LIMIT), (100_000, LIMIT), (199_990, 10), (200_000, 0)];

/// Returns the statements of the adapter, in the order of [`STATEMENTS`].
async fn captured_statements() -> Vec<String> {
    let mut fixture = ReadFixture::with(one_connection(), pets(10)).await;
    let [get, list, by_status] = KINDS;
    let mut texts = Vec::new();
    for (kind, others) in [
        (list, 0),
        (by_status, 0),
        (get, 0),
        (list, 2),
        (by_status, 2),
    ] {
        fixture.read_together(kind, &vec![kind; others]).await;
        let statement = fixture.statements().await.pop();
        texts.push(statement.expect("a statement").text);
    }
    texts
}

/// A session with the prepared statements of the adapter. PostgreSQL makes a plan at the first use, which is now.
async fn prepared(database: &PgDatabase, statements: &[String]) -> SqlSession {
    let session = session(database).await;
    assert_eq!(statements.len(), STATEMENTS.len());
    for ([name, types, values], statement) in STATEMENTS.iter().zip(statements) {
        let prepare = format!("PREPARE {name} ({types}) AS {statement}; EXECUTE {name} ({values})");
        session.run(&prepare).await;
    }
    session
}

/// Executes a get, a list, or a batch of lists. Checks that it reads its rows, this number, by one index scan with this
/// number of searches, and no other rows: a filter would have to skip them.
async fn reads_only_its_own_rows(session: &SqlSession, call: &str, searches: usize, count: i64) {
    let explained = explain(session, &format!("EXECUTE {call}")).await;
    let plan = &explained["Plan"];
    let mut scans = nodes(plan);
    scans.retain(|node| node["Relation Name"] == "pets" || node["Index Name"].is_string());
    let [scan] = scans[..] else {
        panic!("{call}: {plan:#}")
    };
    assert_eq!(scan["Node Type"], "Index Scan", "{call}: {plan:#}");
    // The rows are the average of all loops, which is rounded.
    let loops = number(scan, "Actual Loops");
    let read = rows_read(scan) * loops;
    assert!((read - count).abs() < loops, "{call}: {plan:#}");
    let searches = i64::try_from(searches).expect("a small number");
    let most = count + searches * OTHER_BUFFERS;
    assert!(buffers(plan) <= most, "{call}: {plan:#}");
}

fn array<T: ToString>(values: impl Iterator<Item = T>) -> String {
    let values: Vec<_> = values.map(|value| value.to_string()).collect();
    format!("'{{{}}}'", values.join(","))
}

async fn every_read_is_an_index_scan(session: &SqlSession) {
    let reads = async |call: String, searches, count| {
        reads_only_its_own_rows(session, &call, searches, count).await;
    };
    for (after, count) in LISTS {
        reads(format!("list ({after}, {LIMIT})"), 1, count).await;
    }
    for (status, after, count) in LISTS_BY_STATUS {
        let call = format!("list_by_status ({status}, {after}, {LIMIT})");
        reads(call, 1, count).await;
    }
    let spread: Vec<_> = (1..=500).map(|number| number * 401).collect();
    for (ids, count) in [
        (&[100_000][..], 1),
        (&[200_001], 0),
        (&[200_001, 7, 1], 2),
        (&spread, 498),
    ] {
        reads(format!("gets ({})", array(ids.iter())), ids.len(), count).await;
    }
    let all = LISTS.repeat(10);
    for lists in LISTS.chunks(1).chain([&all[..]]) {
        let after = array(lists.iter().map(|list| list.0));
        let limits = array(lists.iter().map(|_| LIMIT));
        let count = lists.iter().map(|list| list.1).sum();
        reads(format!("lists ({after}, {limits})"), lists.len(), count).await;
    }
    let all = LISTS_BY_STATUS.repeat(10);
    for lists in LISTS_BY_STATUS.chunks(1).chain([&all[..]]) {
        let statuses = array(lists.iter().map(|list| list.0));
        let after = array(lists.iter().map(|list| list.1));
        let limits = array(lists.iter().map(|_| LIMIT));
        let count = lists.iter().map(|list| list.2).sum();
        let call = format!("lists_by_status ({after}, {limits}, {statuses})");
        reads(call, lists.len(), count).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_read_is_an_index_scan_whatever_the_table_contains() {
    let database = migrated().await;
    let statements = captured_statements().await;
    let of_empty_table = prepared(&database, &statements).await;
    database.sql(ROWS);
    every_read_is_an_index_scan(&of_empty_table).await;
    every_read_is_an_index_scan(&prepared(&database, &statements).await).await;

    database.sql("VACUUM ANALYZE pets");
    every_read_is_an_index_scan(&of_empty_table).await;
    every_read_is_an_index_scan(&prepared(&database, &statements).await).await;

    // PostgreSQL plans for ten pages if a table is empty, but plans a full scan for a table of one row.
    database.sql("TRUNCATE pets");
    database.sql("INSERT INTO pets (id, name, category_id, status) VALUES (1, 'Rex', 1, 1)");
    database.sql("ANALYZE pets");
    let of_single_row = prepared(&database, &statements).await;
    database.sql("DELETE FROM pets");
    database.sql(ROWS);
    every_read_is_an_index_scan(&of_single_row).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_read_has_the_plan_settings() {
    in_both_modes(&one_connection(), async |settings| {
        let database = migrated().await;
        let store = trapped(&database, settings).await;
        for _ in 0..2 {
            let error = store.find(1).await.expect_err("trapped");
            assert_eq!(settings_and_statement(&reason(&error)).0, PLAN_SETTINGS);
        }
    })
    .await;
}
