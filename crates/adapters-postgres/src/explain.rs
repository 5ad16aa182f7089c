//! How the server carries out a statement, for tests of plans.

use serde_json::Value;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Carries it out, and returns what that took.
pub(crate) async fn explain(client: &Client, statement: &str) -> Value {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}");
    let messages = client.simple_query(&explain).await.unwrap();
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    serde_json::from_str::<Value>(row.unwrap()).unwrap()[0].clone()
}
