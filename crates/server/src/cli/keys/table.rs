//! The list of API keys as a table and as JSON.

use std::{fmt::Write, time::SystemTime};

use animal_store_app::{ApiKey, ApiKeyList, IssuedToken, Scope, ports::LastUses};
use serde_json::{Value, json};

const HEADINGS: [&str; 8] = ["ID", "LABEL", "SCOPES", "CREATED", "EXPIRES", "LAST FOUR", "LAST USED", "LAST GETPET"];

pub(super) fn text(list: &ApiKeyList) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(tokens(list).map(|(key, token)| {
        let time_or_never = |time_or_none: Option<_>| time_or_none.map_or_else(|| "never".to_owned(), time);
        let [last_used, last_get_pet] = match &list.uses {
            Ok(uses) => {
                let LastUses { request, get_pet } = uses.last(&key.id);
                [request, get_pet].map(time_or_never)
            }
            Err(_) => ["unknown"; 2].map(str::to_owned),
        };
        [
            key.id.to_string(),
            key.label.to_string(),
            key.scopes.to_string(),
            time(token.created),
            time_or_never(token.expires),
            token.last_four.clone(),
            last_used,
            last_get_pet,
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

/// Uses that cannot be read are left out: `null` means that the key was never used.
pub(super) fn json(list: &ApiKeyList) -> serde_json::Result<String> {
    let objects: Vec<Value> = tokens(list)
        .map(|(key, token)| {
            let mut object = json!({
                "id": key.id.as_str(),
                "label": key.label.as_str(),
                "scopes": key.scopes.iter().map(Scope::as_str).collect::<Vec<_>>(),
                "created": time(token.created),
                "expires": token.expires.map(time),
                "last_four": token.last_four,
            });
            if let Ok(uses) = &list.uses {
                let LastUses { request, get_pet } = uses.last(&key.id);
                object["last_used"] = json!(request.map(time));
                object["last_used_get_pet"] = json!(get_pet.map(time));
            }
            object
        })
        .collect();
    Ok(serde_json::to_string_pretty(&objects)? + "\n")
}

/// Returns every token with its key.
fn tokens(list: &ApiKeyList) -> impl Iterator<Item = (&ApiKey, &IssuedToken)> {
    list.keys.iter().flat_map(|key| key.tokens.iter().map(|token| (&key.key, token)))
}

/// Formats a time as RFC 3339 in UTC.
pub(super) fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    use animal_store_app::{
        ApiKeyDigest, ApiKeyId, ApiKeyLabel, IssuedApiKey, Scopes,
        ports::{RecordedUses, StoreFailure},
    };

    use super::*;

    fn list() -> ApiKeyList {
        let key = |id, label, scopes, expires| IssuedApiKey {
            key: ApiKey { id: ApiKeyId::new(id), label: ApiKeyLabel::parse(label).unwrap(), scopes },
            tokens: vec![IssuedToken {
                digest: ApiKeyDigest::from_bytes([0; 32]),
                last_four: "abcd".to_owned(),
                created: humantime::parse_rfc3339("2026-01-01T00:00:00Z").unwrap(),
                expires,
            }],
        };
        let end = humantime::parse_rfc3339("2026-04-01T00:00:00Z").unwrap();
        let keys = vec![
            key("a", "shöp", Scopes::ALL, None),
            key("bb", "back office", [Scope::Read].into_iter().collect(), Some(end)),
        ];
        let last = LastUses { request: Some(end), get_pet: None };
        let uses = RecordedUses { since: Some(end), by_key: [(ApiKeyId::new("bb"), last)].into() };
        ApiKeyList { keys, uses: Ok(uses) }
    }

    fn list_without_uses() -> ApiKeyList {
        ApiKeyList { uses: Err(StoreFailure::Unavailable("no permission".into())), ..list() }
    }

    #[test]
    fn the_table_has_aligned_columns() {
        assert_eq!(
            text(&list()),
            "ID  LABEL        SCOPES      CREATED               EXPIRES               LAST FOUR  LAST USED             \
                LAST GETPET\n\
             a   shöp         read,write  2026-01-01T00:00:00Z  never                 abcd       never                 \
                never\n\
             bb  back office  read        2026-01-01T00:00:00Z  2026-04-01T00:00:00Z  abcd       2026-04-01T00:00:00Z  \
                never\n"
        );
    }

    #[test]
    fn uses_that_cannot_be_read_are_unknown() {
        let text = text(&list_without_uses());
        assert!(text.lines().skip(1).all(|row| row.ends_with("  abcd       unknown    unknown")), "{text}");
        let json: Value = serde_json::from_str(&json(&list_without_uses()).unwrap()).unwrap();
        assert!(json[0].get("last_used").is_none() && json[1].get("last_used_get_pet").is_none(), "{json}");
    }

    #[test]
    fn the_json_array_has_an_object_per_token() {
        let json: Value = serde_json::from_str(&json(&list()).unwrap()).unwrap();
        assert_eq!(
            json,
            json!([
                { "id": "a", "label": "shöp", "scopes": ["read", "write"], "created": "2026-01-01T00:00:00Z",
                  "expires": null, "last_four": "abcd", "last_used": null, "last_used_get_pet": null },
                { "id": "bb", "label": "back office", "scopes": ["read"], "created": "2026-01-01T00:00:00Z",
                  "expires": "2026-04-01T00:00:00Z", "last_four": "abcd", "last_used": "2026-04-01T00:00:00Z",
                  "last_used_get_pet": null },
            ])
        );
    }
}
