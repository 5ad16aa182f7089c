//! The list of API keys as a table and as JSON.

use std::{fmt::Write, time::SystemTime};

use animal_store_app::{Scope, ports::TokenEntry};
use serde_json::{Value, json};

const HEADINGS: [&str; 6] = ["ID", "LABEL", "SCOPES", "CREATED", "EXPIRES", "LAST FOUR"];

pub(super) fn text(entries: &[TokenEntry]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(entries.iter().map(|entry| {
        [
            entry.key.id.to_string(),
            entry.key.label.to_string(),
            entry.key.scopes.to_string(),
            time(entry.created),
            entry.expires.map_or_else(|| "never".to_owned(), time),
            entry.last_four.clone(),
        ]
    }));
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default())
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, &width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

pub(super) fn json(entries: &[TokenEntry]) -> serde_json::Result<String> {
    let objects: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!({
                "id": entry.key.id.as_str(),
                "label": entry.key.label.as_str(),
                "scopes": entry.key.scopes.iter().map(Scope::as_str).collect::<Vec<_>>(),
                "created": time(entry.created),
                "expires": entry.expires.map(time),
                "last_four": entry.last_four,
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&objects)? + "\n")
}

/// Formats a time as RFC 3339 in UTC.
fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    use animal_store_app::{ApiKey, ApiKeyId, ApiKeyLabel, Scopes};

    use super::*;

    fn entries() -> [TokenEntry; 2] {
        let entry = |id, label, scopes, expires| TokenEntry {
            key: ApiKey { id: ApiKeyId::new(id), label: ApiKeyLabel::parse(label).unwrap(), scopes },
            last_four: "abcd".to_owned(),
            created: humantime::parse_rfc3339("2026-01-01T00:00:00Z").unwrap(),
            expires,
        };
        let end = humantime::parse_rfc3339("2026-04-01T00:00:00Z").unwrap();
        [
            entry("a", "shöp", Scopes::ALL, None),
            entry("bb", "back office", [Scope::Read].into_iter().collect(), Some(end)),
        ]
    }

    #[test]
    fn the_table_has_aligned_columns() {
        assert_eq!(
            text(&entries()),
            "ID  LABEL        SCOPES      CREATED               EXPIRES               LAST FOUR\n\
             a   shöp         read,write  2026-01-01T00:00:00Z  never                 abcd\n\
             bb  back office  read        2026-01-01T00:00:00Z  2026-04-01T00:00:00Z  abcd\n"
        );
    }

    #[test]
    fn the_json_array_has_an_object_per_token() {
        let list: Value = serde_json::from_str(&json(&entries()).unwrap()).unwrap();
        assert_eq!(
            list,
            json!([
                { "id": "a", "label": "shöp", "scopes": ["read", "write"], "created": "2026-01-01T00:00:00Z",
                  "expires": null, "last_four": "abcd" },
                { "id": "bb", "label": "back office", "scopes": ["read"], "created": "2026-01-01T00:00:00Z",
                  "expires": "2026-04-01T00:00:00Z", "last_four": "abcd" },
            ])
        );
    }
}
