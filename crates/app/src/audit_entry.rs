use std::time::{Duration, SystemTime};

use crate::{ApiKey, ApiKeyChange, ports::ChangedApiKey, stored_time::stored};

/// The name of a revocation in an entry.
const REVOKE: &str = "revoke";

/// A change of an API key, as its store has recorded it. Times are whole milliseconds, by the clock of the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuditEntry {
    /// When the store applied the change.
    pub at: SystemTime,
    /// The user and the machine: `USER@HOST`.
    pub by: String,
    /// `create`, `rotate` or `revoke`.
    pub change: String,
    /// The key after the change; the revoked key.
    pub key: ApiKey,
    /// When the new token expires. `None`: never, or there is no new token.
    pub expires: Option<SystemTime>,
    /// When the grace of the old tokens ends, after a rotation.
    pub old_token_ends: Option<SystemTime>,
}

impl AuditEntry {
    /// Target of every event about a change of an API key. These events pass every filter of the log.
    pub const LOG_TARGET: &str = "audit";
    /// Maximum number of entries in a store.
    pub const LIMIT: u16 = 10_000;
    /// Time for which an entry is kept: 365 days.
    pub const KEPT: Duration = Duration::from_hours(8760);

    /// Returns the entry without control characters, which the texts of a store may have.
    #[must_use]
    pub fn printable(self) -> Self {
        let [by, change] = [self.by, self.change].map(|text| text.replace(char::is_control, "?"));
        Self { by, change, ..self }
    }

    /// Whether the key was revoked.
    pub fn is_revocation(&self) -> bool {
        self.change == REVOKE
    }

    /// Returns the entry of a change. `None`: an import, which is recorded in its source.
    pub fn of(change: &ApiKeyChange, changed: &ChangedApiKey, by: &str) -> Option<Self> {
        let name = match change {
            ApiKeyChange::Add(..) => "create",
            ApiKeyChange::Rotate(..) => "rotate",
            ApiKeyChange::Revoke(_) => REVOKE,
            ApiKeyChange::Import(_) => return None,
        };
        let before = changed.before.as_ref();
        let after = changed.after.as_ref();
        let old_token_ends = match change {
            ApiKeyChange::Rotate(..) => Some(stored(changed.old_tokens_end())),
            _ => None,
        };
        Some(Self {
            at: stored(changed.at),
            by: by.to_owned(),
            change: name.to_owned(),
            key: after.or(before)?.key.clone(),
            expires: after.and_then(|after| after.tokens.last()?.expires),
            old_token_ends,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ApiKeyDigest, ApiToken, IssuedApiKey, IssuedToken, NewToken, from_milliseconds,
        test_support::api_key,
    };

    #[test]
    fn each_change_but_an_import_has_an_entry_with_stored_times() {
        let token = NewToken::new(&ApiToken::from_random(&[0; 32]), None);
        let id = api_key("key").id;
        let now = from_milliseconds(5_000) + Duration::from_nanos(999_999);
        let issued = |digest, expires| IssuedToken {
            digest: ApiKeyDigest([digest; 32]),
            last_four: String::new(),
            created: from_milliseconds(0),
            expires,
        };
        let end = from_milliseconds(9_000);
        let grace_end = from_milliseconds(7_000);
        let key = |tokens| {
            Some(IssuedApiKey {
                key: api_key("key"),
                tokens,
            })
        };
        let added = key(vec![issued(1, Some(end))]);
        let rotated = key(vec![issued(1, Some(grace_end)), issued(2, None)]);
        for (change, before, after, expected) in [
            (
                ApiKeyChange::Add(api_key("key"), token.clone()),
                None,
                added.clone(),
                ("create", Some(end), None),
            ),
            (
                ApiKeyChange::Rotate(id.clone(), token, Duration::ZERO),
                added.clone(),
                rotated.clone(),
                ("rotate", None, Some(grace_end)),
            ),
            (
                ApiKeyChange::Revoke(id),
                rotated.clone(),
                None,
                ("revoke", None, None),
            ),
        ] {
            let (name, expires, old_token_ends) = expected;
            let changed = ChangedApiKey {
                before,
                after,
                at: now,
            };
            let expected = AuditEntry {
                at: from_milliseconds(5_000),
                by: "user@host".to_owned(),
                change: name.to_owned(),
                key: api_key("key"),
                expires,
                old_token_ends,
            };
            assert_eq!(
                AuditEntry::of(&change, &changed, "user@host"),
                Some(expected)
            );
        }
        let import = ApiKeyChange::Import(rotated.clone().unwrap());
        assert_eq!(
            AuditEntry::of(
                &import,
                &ChangedApiKey {
                    before: None,
                    after: rotated,
                    at: now
                },
                ""
            ),
            None
        );
    }
}
