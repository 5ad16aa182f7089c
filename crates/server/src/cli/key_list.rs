//! `animal-store keys list` and `keys log`: the API keys, and their audit log, as a table and as JSON.

use std::time::SystemTime;

use animal_store_app::{
    ApiKey, AuditEntry, IssuedApiKey, Scope,
    ports::{ApiKeyStore, ApiKeyUse, RecordedUses},
};
use serde_json::{Value, json};

use super::command::{print, table};

/// The columns of the table, by the name of their member in JSON.
const COLUMNS: [&str; 8] = [
    "id",
    "label",
    "scopes",
    "created",
    "expires",
    "last_four",
    "last_used",
    "last_used_get_pet",
];

/// The columns of the audit log.
const LOG_COLUMNS: [&str; 8] = [
    "at",
    "by",
    "change",
    "id",
    "label",
    "scopes",
    "expires",
    "old_token_ends",
];

/// Prints a row per token. Standard error says since when uses are recorded.
pub(super) async fn run(as_json: bool, store: &dyn ApiKeyStore) -> anyhow::Result<()> {
    let keys = store.list().await?;
    let uses = store.list_uses().await.map_err(|error| {
        let reason = format!("{:#}", anyhow::Error::new(error));
        tracing::warn!(
            reason,
            "the uses of the API keys cannot be read: the list does not contain them"
        );
    });
    if let Ok(RecordedUses {
        since: Some(since), ..
    }) = &uses
    {
        tracing::info!(since = time(*since), "earlier uses of API keys are unknown");
    }
    let objects = objects(&keys, uses.as_ref().ok());
    print(if as_json {
        serde_json::to_string_pretty(&objects)? + "\n"
    } else {
        text(&COLUMNS, &objects, "never")
    })
}

/// Prints a row per entry of the audit log.
pub(super) async fn log(as_json: bool, store: &dyn ApiKeyStore) -> anyhow::Result<()> {
    let object = |entry: AuditEntry| {
        json!({
            "at": time(entry.at),
            "by": entry.by,
            "change": entry.change,
            "id": entry.key.id.as_str(),
            "label": entry.key.label.as_str(),
            "scopes": scopes(&entry.key),
            "expires": entry.expires.map(time),
            "old_token_ends": entry.old_token_ends.map(time),
        })
    };
    let objects: Vec<_> = store.audit_log().await?.into_iter().map(object).collect();
    print(if as_json {
        serde_json::to_string_pretty(&objects)? + "\n"
    } else {
        text(&LOG_COLUMNS, &objects, "-")
    })
}

/// Returns an object per token. Uses that cannot be read are left out: `null` means that the key was never used.
fn objects(keys: &[IssuedApiKey], uses: Option<&RecordedUses>) -> Vec<Value> {
    let tokens = keys
        .iter()
        .flat_map(|key| key.tokens.iter().map(|token| (&key.key, token)));
    let object = tokens.map(|(key, token)| {
        let mut object = json!({
            "id": key.id.as_str(),
            "label": key.label.as_str(),
            "scopes": scopes(key),
            "created": time(token.created),
            "expires": token.expires.map(time),
            "last_four": token.last_four,
        });
        if let Some(uses) = uses {
            object["last_used"] = json!(uses.last(&key.id, ApiKeyUse::Request).map(time));
            object["last_used_get_pet"] = json!(uses.last(&key.id, ApiKeyUse::GetPet).map(time));
        }
        object
    });
    object.collect()
}

fn scopes(key: &ApiKey) -> Vec<&'static str> {
    key.scopes.iter().map(Scope::as_str).collect()
}

/// Returns the table of these members. `absent` stands for `null`.
fn text(columns: &[&str; 8], objects: &[Value], absent: &str) -> String {
    let cell = |object: &Value, member| match object.get(member) {
        None => "unknown".to_owned(),
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(","),
        Some(value) => value.as_str().unwrap_or(absent).to_owned(),
    };
    let mut rows = vec![columns.map(|member| member.replace('_', " ").to_uppercase())];
    rows.extend(
        objects
            .iter()
            .map(|object| columns.map(|member| cell(object, member))),
    );
    table(&rows)
}

/// Formats a time as RFC 3339 in UTC.
pub(super) fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    use animal_store_app::{ApiKeyDigest, ApiKeyId, ApiKeyLabel, IssuedToken, Scopes};

    use super::*;

    fn list(can_read_uses: bool) -> Vec<Value> {
        let key = |id, label, scopes, expires| IssuedApiKey {
            key: ApiKey {
                id: ApiKeyId::parse(id).unwrap(),
                label: ApiKeyLabel::parse(label).unwrap(),
                scopes,
            },
            tokens: vec![IssuedToken {
                digest: ApiKeyDigest([0; 32]),
                last_four: "abcd".to_owned(),
                created: humantime::parse_rfc3339("2026-01-01T00:00:00Z").unwrap(),
                expires,
            }],
        };
        let end = humantime::parse_rfc3339("2026-04-01T00:00:00Z").unwrap();
        let keys = [
            key("a", "shöp", Scopes::ALL, None),
            key(
                "bb",
                "back office",
                [Scope::Read].into_iter().collect(),
                Some(end),
            ),
        ];
        let last = [((ApiKeyId::parse("bb").unwrap(), ApiKeyUse::Request), end)].into();
        let uses = RecordedUses {
            since: Some(end),
            last,
        };
        objects(&keys, can_read_uses.then_some(&uses))
    }

    #[test]
    fn the_table_has_aligned_columns() {
        assert_eq!(
            text(&COLUMNS, &list(true), "never"),
            "ID  LABEL        SCOPES      CREATED               EXPIRES               LAST FOUR  LAST USED             \
                LAST USED GET PET\n\
             a   shöp         read,write  2026-01-01T00:00:00Z  never                 abcd       never                 \
                never\n\
             bb  back office  read        2026-01-01T00:00:00Z  2026-04-01T00:00:00Z  abcd       2026-04-01T00:00:00Z  \
                never\n"
        );
    }

    #[test]
    fn uses_that_cannot_be_read_are_unknown() {
        let objects = list(false);
        let text = text(&COLUMNS, &objects, "never");
        assert!(
            text.lines()
                .skip(1)
                .all(|row| row.ends_with("  abcd       unknown    unknown")),
            "{text}"
        );
        assert!(
            objects[0].get("last_used").is_none() && objects[1].get("last_used_get_pet").is_none(),
            "{objects:?}"
        );
    }

    #[test]
    fn json_has_an_object_per_token() {
        assert_eq!(
            Value::from(list(true)),
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
