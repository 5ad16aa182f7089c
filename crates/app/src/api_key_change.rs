//! What a change means for an API key: the rules of every store of API keys, which reads one key, applies a change and
//! writes the result.

#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

use thiserror::Error;

use crate::{
    ApiKey, ApiKeyDigest, ApiKeyId, ApiKeyLabel, ApiToken, Scopes,
    stored_time::{from_milliseconds, later, stored},
};

/// An API key with its valid tokens, oldest first. A key without a valid token does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedApiKey {
    /// The key.
    pub key: ApiKey,
    /// One token; more from a rotation until the end of its grace period.
    pub tokens: Vec<IssuedToken>,
}

/// A token as it is stored. Times are whole milliseconds, by the clock of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedToken {
    /// Digest by which directories find the token.
    pub digest: ApiKeyDigest,
    /// Last characters of the token, by which people recognise it.
    pub last_four: String,
    /// Creation time. The tokens of a key have different ones.
    pub created: SystemTime,
    /// Expiry time. `None`: never.
    pub expires: Option<SystemTime>,
}

/// A token to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Digest by which directories find the token.
    pub digest: ApiKeyDigest,
    /// Last characters of the token, by which people recognise it.
    pub last_four: String,
    /// How long the token is valid. `None`: it does not expire.
    pub lifetime: Option<Duration>,
}

/// A change of one API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiKeyChange {
    /// Adds a key with its first token.
    Add(ApiKey, NewToken),
    /// Gives a key a new token. The old tokens expire after this time at the latest. If the new token has no lifetime,
    /// it expires when the newest old token would have.
    Rotate(ApiKeyId, NewToken, Duration),
    /// Removes a key.
    Revoke(ApiKeyId),
    /// Adds the tokens of a key of another store that the key lacks.
    Import(IssuedApiKey),
}

/// Why a change was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApiKeyRefusal {
    /// No key has the id, which the message does not repeat: it can be a token in the wrong place.
    #[error("no API key has this id")]
    UnknownId,
    /// Another key has the id.
    #[error("another API key has the id {0}")]
    IdTaken(ApiKeyId),
    /// This key has a token of the change.
    #[error("the token already belongs to the API key {} ({}) with the scopes {}", .0.id, .0.label, .0.scopes)]
    TokenTaken(ApiKey),
    /// The store accepts a token of an imported key that the source does not have, or accepts it for another time. Both
    /// can be the newer one.
    #[error(
        "the API key {0} has other tokens in the source than in the target: after an earlier copy, it was changed in \
         one of them. Run animal-store keys revoke {0} with the configuration of the one that has the old tokens, and \
         repeat the command"
    )]
    OtherTokens(ApiKeyId),
}

impl ApiKeyChange {
    /// Returns the id of the key.
    pub fn id(&self) -> &ApiKeyId {
        match self {
            Self::Add(key, _) => &key.id,
            Self::Rotate(id, ..) | Self::Revoke(id) => id,
            Self::Import(imported) => &imported.key.id,
        }
    }

    /// Returns the digests of the tokens that the key gets.
    pub fn digests(&self) -> Vec<ApiKeyDigest> {
        match self {
            Self::Add(_, token) | Self::Rotate(_, token, _) => vec![token.digest],
            Self::Revoke(_) => Vec::new(),
            Self::Import(imported) => imported.tokens.iter().map(|token| token.digest).collect(),
        }
    }

    /// Returns the key after the change; `None`: it does not exist.
    ///
    /// `before`: the key with this id. `owner`: another key that has one of [`digests`](Self::digests). `now`: the time
    /// of the store.
    ///
    /// # Errors
    /// See [`ApiKeyRefusal`].
    pub fn apply(
        &self,
        before: Option<&IssuedApiKey>,
        owner: Option<&ApiKey>,
        now: SystemTime,
    ) -> Result<Option<IssuedApiKey>, ApiKeyRefusal> {
        if let Some(owner) = owner {
            return Err(ApiKeyRefusal::TokenTaken(owner.clone()));
        }
        let after = match self {
            Self::Add(key, token) => add(before, key, token, now)?,
            Self::Rotate(_, token, grace) => {
                let before = existing(before)?;
                rotate(before, token, *grace, now)?
            }
            Self::Revoke(_) => {
                existing(before)?;
                return Ok(None);
            }
            Self::Import(given) => import(before, given, now)?,
        };
        Ok(Some(after.valid_at(now)).filter(|after| !after.tokens.is_empty()))
    }
}

fn existing(before: Option<&IssuedApiKey>) -> Result<&IssuedApiKey, ApiKeyRefusal> {
    before.ok_or(ApiKeyRefusal::UnknownId)
}

fn add(
    before: Option<&IssuedApiKey>,
    key: &ApiKey,
    token: &NewToken,
    now: SystemTime,
) -> Result<IssuedApiKey, ApiKeyRefusal> {
    if let Some(before) = before {
        before.check_lacks(token)?;
        return Err(ApiKeyRefusal::IdTaken(key.id.clone()));
    }
    let expires = token.expires(None, now);
    Ok(IssuedApiKey {
        key: key.clone(),
        tokens: vec![token.issue(now, expires)],
    })
}

fn rotate(
    before: &IssuedApiKey,
    token: &NewToken,
    grace: Duration,
    now: SystemTime,
) -> Result<IssuedApiKey, ApiKeyRefusal> {
    before.check_lacks(token)?;
    let mut created = now;
    let mut inherited = None;
    if let Some(newest) = before.tokens.last() {
        // The order of tokens must not depend on the clock.
        created = now.max(newest.created + Duration::from_millis(1));
        inherited = newest.expires;
    }
    let new = token.issue(created, token.expires(inherited, now));
    let end = later(now, grace);
    let mut after = before.clone();
    for old in &mut after.tokens {
        old.expires = Some(old.expires.map_or(end, |expires| expires.min(end)));
    }
    after.tokens.push(new);
    Ok(after)
}

fn import(
    before: Option<&IssuedApiKey>,
    given: &IssuedApiKey,
    now: SystemTime,
) -> Result<IssuedApiKey, ApiKeyRefusal> {
    let given = given.clone().valid_at(now);
    let Some(before) = before else {
        return Ok(given);
    };
    let is_given = |stored: &IssuedToken| {
        given
            .tokens
            .iter()
            .any(|token| token.digest == stored.digest && token.expires == stored.expires)
    };
    if before.key != given.key {
        Err(ApiKeyRefusal::IdTaken(given.key.id))
    } else if before.tokens.iter().all(is_given) {
        Ok(given)
    } else {
        Err(ApiKeyRefusal::OtherTokens(given.key.id))
    }
}

impl IssuedApiKey {
    /// Stands for a stored key that is not valid, so that it can be revoked.
    ///
    /// # Panics
    /// Never: the label is valid.
    pub fn unreadable(id: ApiKeyId) -> Self {
        let label = ApiKeyLabel::parse("unreadable").expect("a valid label");
        Self {
            key: ApiKey {
                id,
                label,
                scopes: Scopes::default(),
            },
            tokens: Vec::new(),
        }
    }

    fn check_lacks(&self, token: &NewToken) -> Result<(), ApiKeyRefusal> {
        if self.tokens.iter().any(|old| old.digest == token.digest) {
            return Err(ApiKeyRefusal::TokenTaken(self.key.clone()));
        }
        Ok(())
    }

    fn valid_at(mut self, now: SystemTime) -> Self {
        self.tokens
            .retain(|token| token.expires.is_none_or(|expires| expires > now));
        self
    }
}

impl IssuedToken {
    /// Builds a token from what a store has: see [`from_milliseconds`](crate::from_milliseconds) for the times.
    ///
    /// # Errors
    /// The part that is malformed.
    pub fn from_stored(
        digest: ApiKeyDigest,
        last_four: String,
        created: i64,
        expires: Option<i64>,
    ) -> Result<Self, &'static str> {
        if last_four.chars().count() > 4 || last_four.contains(char::is_control) {
            return Err("the last four characters of a token are malformed");
        }
        Ok(Self {
            digest,
            last_four,
            created: from_milliseconds(created),
            expires: expires.map(from_milliseconds),
        })
    }
}

impl NewToken {
    /// Creates the stored form of a token.
    pub fn new(token: &ApiToken, lifetime: Option<Duration>) -> Self {
        Self {
            digest: token.digest(),
            last_four: token.last_four(),
            lifetime,
        }
    }

    /// Returns when the token expires: after its lifetime, rounded up to a millisecond, or at the inherited time.
    fn expires(&self, inherited: Option<SystemTime>, now: SystemTime) -> Option<SystemTime> {
        let Some(lifetime) = self.lifetime else {
            return inherited;
        };
        let round_up = Duration::from_nanos(999_999);
        Some(later(now, lifetime.saturating_add(round_up)))
    }

    fn issue(&self, created: SystemTime, expires: Option<SystemTime>) -> IssuedToken {
        IssuedToken {
            digest: self.digest,
            last_four: self.last_four.clone(),
            created: stored(created),
            expires,
        }
    }
}
