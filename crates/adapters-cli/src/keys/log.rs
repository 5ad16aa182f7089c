//! `animal-store keys log`: the audit log of the API keys, as a table and as JSON.

use animal_store_app::{AuditEntry, ReadAuditLog};
use serde::Serialize;

use super::rows::{Row, print_rows, scopes, time};

/// A change of a key, as `keys log` prints it.
#[derive(Serialize)]
struct AuditRow {
    at: String,
    by: String,
    change: String,
    id: String,
    label: String,
    scopes: Vec<&'static str>,
    expires: Option<String>,
    old_token_ends: Option<String>,
}

/// Prints a row per entry of the audit log.
pub(super) async fn run(log: &ReadAuditLog, as_json: bool) -> anyhow::Result<()> {
    let entries = log.execute().await?;
    let rows: Vec<_> = entries.into_iter().map(AuditRow::from).collect();
    print_rows(&rows, as_json)
}

impl From<AuditEntry> for AuditRow {
    fn from(entry: AuditEntry) -> Self {
        Self {
            at: time(entry.at),
            by: entry.by,
            change: entry.change,
            id: entry.key.id.to_string(),
            label: entry.key.label.as_str().to_owned(),
            scopes: scopes(&entry.key),
            expires: entry.expires.map(time),
            old_token_ends: entry.old_token_ends.map(time),
        }
    }
}

impl Row for AuditRow {
    const HEAD: [&str; 8] = [
        "AT",
        "BY",
        "CHANGE",
        "ID",
        "LABEL",
        "SCOPES",
        "EXPIRES",
        "OLD TOKEN ENDS",
    ];

    fn cells(&self) -> [String; 8] {
        let or_dash = |time: &Option<String>| time.clone().unwrap_or_else(|| "-".to_owned());
        [
            self.at.clone(),
            self.by.clone(),
            self.change.clone(),
            self.id.clone(),
            self.label.clone(),
            self.scopes.join(","),
            or_dash(&self.expires),
            or_dash(&self.old_token_ends),
        ]
    }
}
