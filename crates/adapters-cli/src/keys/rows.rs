//! Rows about API keys, as a table and as JSON.

use std::time::SystemTime;

use animal_store_app::{ApiKey, Scope};
use serde::Serialize;

use crate::output;

/// A row of a table, and an object of JSON.
pub(super) trait Row: Serialize {
    const HEAD: [&str; 8];

    fn cells(&self) -> [String; 8];
}

pub(super) fn print_rows<R: Row>(rows: &[R], as_json: bool) -> anyhow::Result<()> {
    output::print(if as_json {
        serde_json::to_string_pretty(rows)? + "\n"
    } else {
        table(rows)
    })
}

pub(super) fn table<R: Row>(rows: &[R]) -> String {
    let mut lines = vec![R::HEAD.map(str::to_owned)];
    lines.extend(rows.iter().map(R::cells));
    output::table(&lines)
}

pub(super) fn scopes(key: &ApiKey) -> Vec<&'static str> {
    key.scopes.iter().map(Scope::as_str).collect()
}

/// Formats a time as RFC 3339 in UTC.
pub(super) fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
