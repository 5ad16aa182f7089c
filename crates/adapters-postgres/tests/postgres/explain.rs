//! The statements of the adapter and their plans.

use serde_json::Value;

use crate::prelude::*;

/// The settings of every session of the adapter that plans depend on.
pub(crate) const PLAN_SETTINGS: &str = "plan_cache_mode=force_generic_plan enable_seqscan=off enable_bitmapscan=off \
    enable_sort=off enable_nestloop=off jit=off";

/// A view that takes the place of a table. Every statement that uses it fails with the plan settings and its own text.
pub(crate) fn trap(table: &str) -> String {
    format!(
        "CREATE SCHEMA IF NOT EXISTS trap;
        CREATE OR REPLACE FUNCTION trap.report() RETURNS text LANGUAGE plpgsql AS $$
        BEGIN
            RAISE '<<%|%>>', (
                SELECT string_agg(name || '=' || current_setting(name), ' ' ORDER BY ordinal)
                FROM unnest(string_to_array(
                    'plan_cache_mode enable_seqscan enable_bitmapscan enable_sort enable_nestloop jit', ' '
                )) WITH ORDINALITY AS setting (name, ordinal)
            ), current_query();
        END $$;
        CREATE FUNCTION trap.{table}() RETURNS SETOF public.{table} LANGUAGE plpgsql AS
            'BEGIN PERFORM trap.report(); END';
        CREATE VIEW trap.{table} AS SELECT * FROM trap.{table}();
        CREATE FUNCTION trap.insert_{table}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM trap.report(); END';
        CREATE TRIGGER insert INSTEAD OF INSERT ON trap.{table} FOR EACH ROW
            EXECUTE FUNCTION trap.insert_{table}();"
    )
}

/// A store that has the trap in place of its table.
pub(crate) async fn trapped(database: &PgDatabase, settings: PostgresSettings) -> Store {
    database.sql(&trap("pets"));
    Store::in_schema(database, "trap", settings).await
}

/// The plan settings and the statement that an error of a [`trapped`] store reports.
pub(crate) fn settings_and_statement(error: &str) -> (String, String) {
    let report = error
        .split_once("<<")
        .and_then(|(_, rest)| rest.rsplit_once(">>"))
        .expect(error)
        .0;
    let (settings, statement) = report.split_once('|').expect("settings");
    (settings.to_owned(), statement.to_owned())
}

/// A session with the plan settings of the adapter.
pub(crate) async fn session(database: &PgDatabase) -> SqlSession {
    let session = SqlSession::of(database).await;
    let set = PLAN_SETTINGS.replace(' ', "; SET ");
    session.run(&format!("SET {set}")).await;
    session
}

/// Runs a statement and returns how the server executed it.
pub(crate) async fn explain(session: &SqlSession, statement: &str) -> Value {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}");
    let plan = session.column(&explain).await;
    serde_json::from_str::<Value>(&plan[0]).expect("JSON")[0].clone()
}

/// A node of a plan and all nodes below it.
pub(crate) fn nodes(plan: &Value) -> Vec<&Value> {
    let below = plan["Plans"].as_array().into_iter().flatten();
    [plan].into_iter().chain(below.flat_map(nodes)).collect()
}

/// Newer servers have decimals for some numbers.
#[expect(
    clippy::cast_possible_truncation,
    reason = "rows and buffers are counted"
)]
pub(crate) fn number(plan: &Value, name: &str) -> i64 {
    plan[name].as_f64().unwrap_or_default() as i64
}

pub(crate) fn rows_read(scan: &Value) -> i64 {
    [
        "Actual Rows",
        "Rows Removed by Filter",
        "Rows Removed by Index Recheck",
    ]
    .iter()
    .map(|name| number(scan, name))
    .sum()
}

/// Number of pages that a statement used.
pub(crate) fn buffers(plan: &Value) -> i64 {
    number(plan, "Shared Hit Blocks") + number(plan, "Shared Read Blocks")
}
