//! `animal-store keys list`: the API keys, with a row per token, as a table and as JSON.

use animal_store_app::{
    ApiKey, IssuedApiKey, IssuedToken, ListApiKeys, ListedApiKeys,
    ports::{ApiKeyUse, RecordedUses},
};
use serde::Serialize;

use super::rows::{Row, print_rows, scopes, time};

/// A token, as `keys list` prints it.
#[derive(Serialize)]
struct TokenRow {
    id: String,
    label: String,
    scopes: Vec<&'static str>,
    created: String,
    expires: Option<String>,
    last_four: String,
    /// `None`: the uses cannot be read, and the members are left out.
    #[serde(flatten)]
    uses: Option<LastUses>,
}

/// The last uses of a key. `None`: never.
#[derive(Serialize)]
struct LastUses {
    last_used: Option<String>,
    last_used_get_pet: Option<String>,
}

/// Prints a row per token. Standard error says since when uses are recorded.
pub(super) async fn run(list: &ListApiKeys, as_json: bool) -> anyhow::Result<()> {
    let ListedApiKeys { keys, uses } = list.execute().await?;
    let uses = match uses {
        Ok(uses) => Some(uses),
        Err(error) => {
            let reason = format!("{:#}", anyhow::Error::new(error));
            tracing::warn!(
                reason,
                "the uses of the API keys cannot be read: the list does not contain them"
            );
            None
        }
    };
    if let Some(since) = uses.as_ref().and_then(|uses| uses.since) {
        tracing::info!(since = time(since), "earlier uses of API keys are unknown");
    }
    print_rows(&rows(&keys, uses.as_ref()), as_json)
}

fn rows(keys: &[IssuedApiKey], uses: Option<&RecordedUses>) -> Vec<TokenRow> {
    let mut rows = Vec::new();
    for IssuedApiKey { key, tokens } in keys {
        rows.extend(tokens.iter().map(|token| TokenRow::new(key, token, uses)));
    }
    rows
}

impl TokenRow {
    fn new(key: &ApiKey, token: &IssuedToken, uses: Option<&RecordedUses>) -> Self {
        Self {
            id: key.id.to_string(),
            label: key.label.as_str().to_owned(),
            scopes: scopes(key),
            created: time(token.created),
            expires: token.expires.map(time),
            last_four: token.last_four.clone(),
            uses: uses.map(|uses| LastUses {
                last_used: uses.last(&key.id, ApiKeyUse::Request).map(time),
                last_used_get_pet: uses.last(&key.id, ApiKeyUse::GetPet).map(time),
            }),
        }
    }
}

impl Row for TokenRow {
    const HEAD: [&str; 8] = [
        "ID",
        "LABEL",
        "SCOPES",
        "CREATED",
        "EXPIRES",
        "LAST FOUR",
        "LAST USED",
        "LAST USED GET PET",
    ];

    fn cells(&self) -> [String; 8] {
        let or_never = |time: &Option<String>| time.clone().unwrap_or_else(|| "never".to_owned());
        let unknown = || "unknown".to_owned();
        let uses = self.uses.as_ref();
        [
            self.id.clone(),
            self.label.clone(),
            self.scopes.join(","),
            self.created.clone(),
            or_never(&self.expires),
            self.last_four.clone(),
            uses.map_or_else(unknown, |uses| or_never(&uses.last_used)),
            uses.map_or_else(unknown, |uses| or_never(&uses.last_used_get_pet)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use animal_store_app::{ApiKeyDigest, ApiKeyId, ApiKeyLabel, Scope, Scopes};
    use serde_json::json;

    use super::*;
    use crate::keys::rows::table;

    fn listed(can_read_uses: bool) -> Vec<TokenRow> {
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
        let read = [Scope::Read].into_iter().collect();
        let keys = [
            key("a", "shöp", Scopes::ALL, None),
            key("bb", "back office", read, Some(end)),
        ];
        let last = [((ApiKeyId::parse("bb").unwrap(), ApiKeyUse::Request), end)].into();
        let uses = RecordedUses {
            since: Some(end),
            last,
        };
        rows(&keys, can_read_uses.then_some(&uses))
    }

    #[test]
    fn the_table_has_aligned_columns() {
        assert_eq!(
            table(&listed(true)),
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
        let rows = listed(false);
        let table = table(&rows);
        let mut lines = table.lines().skip(1);
        let are_unknown = lines.all(|row| row.ends_with("  abcd       unknown    unknown"));
        assert!(are_unknown, "{table}");
        let object = serde_json::to_value(&rows[0]).unwrap();
        let is_absent = |member| object.get(member).is_none();
        assert!(
            is_absent("last_used") && is_absent("last_used_get_pet"),
            "{object}"
        );
    }

    #[test]
    fn json_has_an_object_per_token() {
        assert_eq!(
            serde_json::to_value(listed(true)).unwrap(),
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
