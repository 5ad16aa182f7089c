//! Rows of API keys, and changes of them, for adapters that have tables of keys and of tokens.

use std::{sync::Arc, time::SystemTime};

use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyDigest, ApiKeyId, ApiKeyRefusal, IssuedApiKey, IssuedToken, from_milliseconds,
    ports::ChangedApiKey,
};

use crate::StoredKey;

/// A key as its store has it, with its valid tokens, oldest first. Without tokens, it does not exist.
pub struct KeyRow {
    /// The id.
    pub id: String,
    /// The label.
    pub label: String,
    /// The scopes, with commas.
    pub scopes: String,
    /// The tokens.
    pub tokens: Vec<TokenRow>,
}

/// A token as its store has it. Times are in milliseconds since 1970.
pub struct TokenRow {
    /// SHA-256 of the token.
    pub digest: Vec<u8>,
    /// Last characters of the token.
    pub last_four: String,
    /// Creation time.
    pub created_at: i64,
    /// Expiry time. `None`: never.
    pub expires_at: Option<i64>,
}

impl KeyRow {
    /// Whether the key has a valid token.
    pub fn exists(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Parses the key with its tokens.
    ///
    /// # Errors
    /// The reason why it is not valid.
    pub fn issued(&self) -> Result<IssuedApiKey, String> {
        let key = self.key()?;
        let tokens = self.tokens.iter().map(TokenRow::issued).collect::<Result<_, _>>();
        Ok(IssuedApiKey { key, tokens: tokens.map_err(|problem| self.problem(problem))? })
    }

    fn key(&self) -> Result<ApiKey, String> {
        ApiKey::from_stored(&self.id, &self.label, &self.scopes).map_err(|problem| self.problem(problem))
    }

    fn problem(&self, problem: &str) -> String {
        format!("API key {:?}: {problem}", self.id)
    }
}

impl TokenRow {
    /// The digest, unless it is malformed: then no token has it.
    fn digest(&self) -> Option<ApiKeyDigest> {
        self.digest.as_slice().try_into().ok().map(ApiKeyDigest)
    }

    fn issued(&self) -> Result<IssuedToken, &'static str> {
        let digest = self.digest().ok_or("the digest of a token is malformed")?;
        IssuedToken::from_stored(digest, self.last_four.clone(), self.created_at, self.expires_at)
    }
}

impl From<KeyRow> for StoredKey {
    fn from(row: KeyRow) -> Self {
        let token = |token: &TokenRow| Some((token.digest()?, token.expires_at.map(from_milliseconds)));
        Self {
            id: ApiKeyId::new(&row.id),
            key: row.key().map(Arc::new),
            tokens: row.tokens.iter().filter_map(token).collect(),
        }
    }
}

/// Applies a change at the time `now` of the store. `found`: the key with the id of the change, and the keys that have
/// its tokens. The caller writes the result.
///
/// # Errors
/// The reason why a row is not valid.
pub fn apply_key_change(
    change: &ApiKeyChange,
    found: &[KeyRow],
    now: SystemTime,
) -> Result<Result<ChangedApiKey, ApiKeyRefusal>, String> {
    let id = change.id();
    let mut keys = found.iter().filter(|key| key.exists());
    let before = match (keys.clone().find(|key| key.id == id.as_str()), change) {
        (None, _) => None,
        // So that an invalid key can be revoked.
        (Some(key), ApiKeyChange::Revoke(_)) => {
            Some(key.issued().unwrap_or_else(|_| IssuedApiKey::unreadable(id.clone())))
        }
        (Some(key), _) => Some(key.issued()?),
    };
    let owner = keys.find(|key| key.id != id.as_str()).map(KeyRow::key).transpose()?;
    let after = change.apply(before.as_ref(), owner.as_ref(), now);
    Ok(after.map(|after| ChangedApiKey { before, after, at: now }))
}
