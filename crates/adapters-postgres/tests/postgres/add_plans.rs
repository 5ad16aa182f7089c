//! The cost of a batch with keys depends only on the size of the batch, whatever the tables contain when its plan is
//! made and when it is used.

use animal_store_app::{IdempotencyKey, ports::AddPet, test_support::new_pet};

use crate::{
    explain::{PLAN_SETTINGS, explain, nodes, number, session, settings_and_statement, trapped},
    prelude::*,
};

/// The largest batch.
const MAX_BATCH: usize = 1000;
/// Keys are numbers.
const RECORDS: &str = "
    INSERT INTO idempotency_keys
    SELECT 'shop', decode(lpad(to_hex(n), 64, '0'), 'hex'), '', n, now() + interval '1 hour'
    FROM generate_series(100001, 200000) AS n;
    INSERT INTO pets (name, category_id) SELECT 'Rex', 1 FROM generate_series(1, 100000)";

async fn captured_statement(database: &PgDatabase) -> String {
    let store = trapped(database, one_connection()).await;
    let request = AddPet {
        pet: new_pet(),
        idempotency_key: Some(IdempotencyKey::new(api_key_id("shop"), "key")),
    };
    let error = store.repository.add(request).await.expect_err("trapped");
    let (settings, statement) = settings_and_statement(&reason(&error));
    assert_eq!(settings, PLAN_SETTINGS);
    statement
}

/// A session with the prepared statement and its plan.
async fn prepared(database: &PgDatabase, statement: &str) -> SqlSession {
    let session = session(database).await;
    let types = "text[], bigint[], smallint[], text[], bytea[], bytea[]";
    let prepare = format!("PREPARE keyed ({types}) AS {statement}");
    session.run(&format!("{prepare}; {}", execute(1, 1))).await;
    session
}

/// Adds this number of pets, with keys from `from` on.
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

/// Adds a batch, and replays it.
async fn touches_no_more_rows_than_it_adds(session: &SqlSession, from: usize) {
    for _ in 0..2 {
        let explained = explain(session, &execute(from, MAX_BATCH)).await;
        assert!(explained["JIT"].is_null(), "{explained:#}");
        for node in nodes(&explained["Plan"]) {
            assert_ne!(node["Node Type"], "Nested Loop", "{explained:#}");
            assert_eq!(number(node, "Actual Loops"), 1, "{explained:#}");
            assert!(number(node, "Actual Rows") <= 1000, "{explained:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_touches_no_more_rows_than_it_adds_whatever_the_tables_contain() {
    let database = migrated().await;
    let statement = captured_statement(&database).await;
    let of_empty_tables = prepared(&database, &statement).await;
    touches_no_more_rows_than_it_adds(&of_empty_tables, 1001).await;
    database.sql(RECORDS);
    touches_no_more_rows_than_it_adds(&of_empty_tables, 2001).await;
    database.sql("VACUUM ANALYZE pets, idempotency_keys");
    touches_no_more_rows_than_it_adds(&of_empty_tables, 3001).await;
    touches_no_more_rows_than_it_adds(&prepared(&database, &statement).await, 4001).await;
}
