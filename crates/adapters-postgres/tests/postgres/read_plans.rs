//! However the table looks, when a plan is made and when it is used: a page reads its own rows and nothing else.
//!
//! A million animals: all are available, but for 50 that are pending, in between, and 50 that are sold, the last.

use std::time::Duration;

use animal_store_test_servers::PgDatabase;
use diesel::{debug_query, query_builder::QueryFragment};
use serde_json::Value;
use tokio_postgres::Client;

use super::*;
use crate::{Migrations, PgEndpoint, endpoint::Opened, explain::explain, settings::PLANS};

/// One more than the greatest page, as a list asks for.
const AT_MOST: i64 = 101;

/// Pages of an index on the way to its leaves and among them, and of the table where a row's page is not the next.
const OTHER_BUFFERS: i64 = 10;

const ROWS: &str = "
    INSERT INTO pets (id, name, category_id, status)
    SELECT n, 'Rex', 1, CASE WHEN n > 999950 THEN 3 WHEN n % 20000 = 0 THEN 2 ELSE 1 END
    FROM generate_series(1, 1000000) AS n";

/// What one would write.
const NAIVE: &str = "
    PREPARE naive (smallint, bigint, bigint) AS
        SELECT id, name, category_id, status FROM pets WHERE status = $1 AND id > $2 ORDER BY id LIMIT $3;
    EXECUTE naive (3, 0, 101)";

/// What Diesel makes of it, and its values.
fn sql(query: PetQuery) -> (String, String) {
    fn text(query: &impl QueryFragment<Pg>) -> (String, String) {
        let text = debug_query::<Pg, _>(query).to_string();
        let (sql, values) = text.split_once(" -- binds: [").expect("values");
        (sql.to_owned(), values.trim_end_matches(']').to_owned())
    }
    match query {
        PetQuery::Page { after, at_most } => text(&page(after, at_most)),
        PetQuery::PageOf { status, after, at_most } => text(&page_of(status, after, at_most)),
        PetQuery::One { id } => text(&one(id)),
    }
}

/// What is asked under the same name is the same statement. Its parameters have the types that diesel-async gives them.
fn name_and_types(query: PetQuery) -> (&'static str, &'static str) {
    match query {
        PetQuery::Page { .. } => ("page", "bigint, bigint"),
        PetQuery::PageOf { .. } => ("page_of", "smallint, smallint, bigint, bigint"),
        PetQuery::One { .. } => ("one", "bigint, bigint"),
    }
}

struct Session(Client, #[expect(dead_code, reason = "the connection ends with it")] crate::endpoint::Driver);

impl Session {
    /// A connection as those that read.
    async fn begin(database: &PgDatabase) -> Self {
        let endpoint = PgEndpoint::new(&database.url().into()).unwrap();
        let Opened { client, driver } = endpoint.connect(Duration::from_secs(10)).await.unwrap();
        client.batch_execute(&PLANS.map(|plan| format!("SET {plan};")).concat()).await.unwrap();
        Self(client, driver)
    }

    /// One as those that read have it, with plans that are made now.
    async fn prepared(database: &PgDatabase) -> Self {
        let session = Self::begin(database).await;
        for query in [(None, 0), (Some(PetStatus::Sold), 0)].map(|(status, after)| of(status, after)) {
            session.prepare(query).await;
        }
        session.prepare(PetQuery::One { id: 1 }).await;
        session
    }

    async fn prepare(&self, query: PetQuery) {
        let ((sql, values), (name, types)) = (sql(query), name_and_types(query));
        // A plan is made at the first use.
        let prepare = format!("PREPARE {name} ({types}) AS {sql}; EXECUTE {name} ({values})");
        self.0.batch_execute(&prepare).await.unwrap();
    }

    async fn explain(&self, statement: &str) -> Value {
        explain(&self.0, statement).await["Plan"].clone()
    }

    /// Asks, and looks at how the answer was found.
    async fn reads_no_more_than_it_returns(&self, query: PetQuery, count: i64) {
        let plan = self.explain(&format!("EXECUTE {} ({})", name_and_types(query).0, sql(query).1)).await;
        assert_eq!(number(&plan, "Actual Rows"), count, "{query:?}: {plan:#}");
        let scans = scans(&plan);
        let [scan] = &scans[..] else { panic!("{query:?}: {plan:#}") };
        assert_eq!(scan["Node Type"], "Index Scan", "{query:?}: {plan:#}");
        let index = if matches!(query, PetQuery::PageOf { .. }) { "pets_status_id" } else { "pets_pkey" };
        assert_eq!(scan["Index Name"], index, "{query:?}: {plan:#}");
        assert!(rows_read(scan) <= count, "{query:?}: {plan:#}");
        let buffers = number(&plan, "Shared Hit Blocks") + number(&plan, "Shared Read Blocks");
        assert!(buffers <= count + OTHER_BUFFERS, "{query:?}: {plan:#}");
    }
}

fn of(status: Option<PetStatus>, after: i64) -> PetQuery {
    PetQuery::page(status, PetId::parse(after).ok(), usize::try_from(AT_MOST).unwrap())
}

/// Newer servers have decimals for some.
#[expect(clippy::cast_possible_truncation, reason = "rows and buffers are counted")]
fn number(plan: &Value, name: &str) -> i64 {
    plan[name].as_f64().unwrap_or_default() as i64
}

fn rows_read(scan: &Value) -> i64 {
    ["Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"]
        .map(|name| number(scan, name))
        .iter()
        .sum()
}

/// What a plan has below its limit. A plan with a sort or a bitmap has more.
fn scans(plan: &Value) -> Vec<Value> {
    let below = plan["Plans"].as_array().cloned().unwrap_or_default();
    if plan["Node Type"] == "Limit" {
        below.iter().flat_map(scans).collect()
    } else {
        [plan.clone()].into_iter().chain(below).collect()
    }
}

async fn every_page_is_a_walk_along_an_index(session: &Session) {
    let status = |status, after| of(Some(status), after);
    for (query, count) in [
        (of(None, 0), AT_MOST),
        (of(None, 500_000), AT_MOST),
        (of(None, 999_990), 10),
        (of(None, 1_000_000), 0),
        (status(PetStatus::Available, 0), AT_MOST),
        (status(PetStatus::Available, 500_000), AT_MOST),
        (status(PetStatus::Available, 999_940), 10),
        (status(PetStatus::Pending, 0), 49),
        (status(PetStatus::Pending, 500_000), 24),
        (status(PetStatus::Pending, 999_000), 0),
        (status(PetStatus::Sold, 0), 50),
        (status(PetStatus::Sold, 999_990), 10),
        (PetQuery::PageOf { status: 4, after: 0, at_most: AT_MOST }, 0),
        (PetQuery::PageOf { status: 0, after: 0, at_most: AT_MOST }, 0),
        (PetQuery::One { id: 500_000 }, 1),
        (PetQuery::One { id: 1_000_001 }, 0),
    ] {
        session.reads_no_more_than_it_returns(query, count).await;
    }
}

async fn empty() -> PgDatabase {
    let database = PgDatabase::new();
    let endpoint = PgEndpoint::new(&database.url().into()).unwrap();
    Migrations::new(endpoint, Duration::from_secs(10)).run().await.unwrap();
    // Nobody makes the plans anew behind our backs.
    database.sql("ALTER TABLE pets SET (autovacuum_enabled = off)");
    database
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_table_looks_like_a_page_is_a_walk_along_an_index() {
    let database = empty().await;
    let made_on_an_empty_table = Session::prepared(&database).await;
    database.sql(ROWS);
    every_page_is_a_walk_along_an_index(&made_on_an_empty_table).await;
    every_page_is_a_walk_along_an_index(&Session::prepared(&database).await).await;

    database.sql("VACUUM ANALYZE pets");
    every_page_is_a_walk_along_an_index(&made_on_an_empty_table).await;
    every_page_is_a_walk_along_an_index(&Session::prepared(&database).await).await;

    // As one would write it, the other index serves as well, and the 50 that are sold are found behind all others.
    let session = Session::begin(&database).await;
    session.0.batch_execute(NAIVE).await.unwrap();
    let plan = session.explain("EXECUTE naive (3, 0, 101)").await;
    assert!(rows_read(&scans(&plan)[0]) > 100 * AT_MOST, "{plan:#}");
}

/// PostgreSQL takes an empty table for one of ten pages, but knows of one with a single row that reading it whole is
/// cheapest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_was_made_on_a_small_table_is_a_walk_along_an_index() {
    let database = empty().await;
    database.sql("INSERT INTO pets (id, name, category_id, status) VALUES (1, 'Rex', 1, 1)");
    database.sql("ANALYZE pets");
    let made_on_a_single_row = Session::prepared(&database).await;
    database.sql("DELETE FROM pets");
    database.sql(ROWS);
    every_page_is_a_walk_along_an_index(&made_on_a_single_row).await;
}
