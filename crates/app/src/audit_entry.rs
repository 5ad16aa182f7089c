use std::time::{Duration, SystemTime};

use crate::{ApiKey, ApiKeyChange, from_milliseconds, milliseconds, ports::ChangedApiKey};

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
    /// Time for which an entry is kept.
    pub const KEPT: Duration = Duration::from_hours(365 * 24);

    /// Returns the entry of a change. `None`: an import, which is recorded in its source.
    pub fn of(change: &ApiKeyChange, changed: &ChangedApiKey, by: &str) -> Option<Self> {
        let name = match change {
            ApiKeyChange::Add(..) => "create",
            ApiKeyChange::Rotate(..) => "rotate",
            ApiKeyChange::Revoke(_) => "revoke",
            ApiKeyChange::Import(_) => return None,
        };
        let ChangedApiKey { before, after, at } = changed;
        let stored = |time: SystemTime| from_milliseconds(milliseconds(time));
        Some(Self {
            at: stored(*at),
            by: by.to_owned(),
            change: name.to_owned(),
            key: after.as_ref().or(before.as_ref())?.key.clone(),
            expires: after.as_ref().and_then(|after| after.tokens.last()?.expires),
            old_token_ends: (name == "rotate").then(|| stored(changed.old_tokens_end())),
        })
    }
}
