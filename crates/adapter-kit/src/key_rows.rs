//! The rows of API keys and of their tokens, as adapters store them in tables `api_keys` and `api_key_tokens`.

use std::{sync::Arc, time::SystemTime};

use animal_store_app::{
    ApiKey, ApiKeyChange, ApiKeyDigest, ApiKeyRefusal, IssuedApiKey, IssuedToken,
    from_milliseconds, milliseconds, ports::ChangedApiKey,
};

use crate::{KeyCounts, KeyDelta, KeyState, StoredKey};

/// A key as it is stored, with its tokens, oldest first. Some of them may have expired.
pub struct KeyRows {
    id: String,
    label: String,
    scopes: String,
    tokens: Vec<TokenRow>,
}

/// Selects keys.
#[derive(Clone, Copy)]
pub enum SelectKeys<'a> {
    /// The keys that have changed since this version.
    ChangedSince(i64),
    /// The key with this id.
    Id(&'a str),
    /// The key of the token with this digest.
    Digest(&'a [u8]),
}

/// The columns of a key.
pub type KeyColumns = (String, String, String);

/// The columns of a token: digest, last four characters, creation and expiry. Times are in milliseconds since 1970.
pub type TokenColumns = (Vec<u8>, String, i64, Option<i64>);

#[derive(Clone)]
struct TokenRow {
    digest: Vec<u8>,
    last_four: String,
    created_at: i64,
    expires_at: Option<i64>,
}

/// A change of a key, as it is written.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyWrite {
    /// The tokens after the change are written in place of those that are deleted. One that has expired may be stored
    /// already, for this key or another one.
    pub changed: ChangedApiKey,
    /// Of the stored tokens of the key, those that expire later are deleted: the others only look expired, if the clock
    /// is wrong. In milliseconds since 1970.
    pub kept_until: i64,
    /// By how much the numbers of keys and tokens grow.
    pub(crate) growth: KeyCounts,
}

impl KeyRows {
    /// Collects the rows of a join, which are in the order of the ids. Keys without tokens are included.
    ///
    /// # Errors
    /// The first error of a row.
    pub fn collect<E>(
        rows: impl IntoIterator<Item = Result<(KeyColumns, Option<TokenColumns>), E>>,
    ) -> Result<Vec<Self>, E> {
        let mut collected: Vec<Self> = Vec::new();
        for row in rows {
            let ((id, label, scopes), token) = row?;
            let token = token.map(|(digest, last_four, created_at, expires_at)| TokenRow {
                digest,
                last_four,
                created_at,
                expires_at,
            });
            match collected.last_mut() {
                Some(last) if last.id == id => last.tokens.extend(token),
                _ => collected.push(Self {
                    id,
                    label,
                    scopes,
                    tokens: token.into_iter().collect(),
                }),
            }
        }
        Ok(collected)
    }

    /// Returns what a directory gets of this state of the store. `is_complete`: these are the rows of all keys.
    ///
    /// # Errors
    /// The store does not have all rows of the state.
    pub fn delta(rows: Vec<Self>, state: KeyState, is_complete: bool) -> Result<KeyDelta, String> {
        if is_complete {
            let found = KeyCounts::of(&rows);
            let KeyCounts { keys, tokens } = state.counts;
            if found != state.counts {
                return Err(format!(
                    "the store has {} API keys with {} tokens, and its state says {keys} with {tokens}: a restore is not \
                     complete, or rows were changed by hand",
                    found.keys, found.tokens
                ));
            }
        }
        Ok(KeyDelta {
            state,
            keys: rows.into_iter().map(StoredKey::from).collect(),
            is_complete,
        })
    }

    /// Applies a change to the key with its id, by the rules of [`ApiKeyChange::apply`]. `owners`: the keys that have
    /// one of its digests, each with these tokens only.
    ///
    /// # Errors
    /// The reason why a stored key is not valid. The inner error is a refusal of the change.
    pub fn apply(
        change: &ApiKeyChange,
        stored: Option<&Self>,
        owners: &[Self],
        now: SystemTime,
    ) -> Result<Result<KeyWrite, ApiKeyRefusal>, String> {
        let id = change.id();
        let revokes = matches!(change, ApiKeyChange::Revoke(_));
        let before = match stored.map(|key| key.valid_at(now)).filter(Self::exists) {
            None => None,
            // So that an invalid key can be revoked.
            Some(key) if revokes => Some(
                key.issued()
                    .unwrap_or_else(|_| IssuedApiKey::unreadable(id.clone())),
            ),
            Some(key) => Some(key.issued()?),
        };
        let owner = owners
            .iter()
            .map(|key| key.valid_at(now))
            .find(|key| key.exists() && key.id != id.as_str())
            .map(|key| key.key())
            .transpose()?;
        let after = match change.apply(before.as_ref(), owner.as_ref(), now) {
            Ok(after) => after,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let kept_until = if revokes { i64::MIN } else { milliseconds(now) };
        let tokens = after.iter().flat_map(|after| &after.tokens);
        let known = stored.iter().copied().chain(owners);
        let known: Vec<_> = known.flat_map(|key| &key.tokens).collect();
        let new = tokens.filter(|new| known.iter().all(|known| known.digest != new.digest.0));
        let stored_tokens = stored.map_or(&[][..], |stored| &stored.tokens);
        let deleted = stored_tokens
            .iter()
            .filter(|token| token.expires_at.is_none_or(|expires| expires > kept_until))
            .filter(|token| !is_of(after.as_ref(), token));
        let growth = KeyCounts {
            keys: i64::from(stored.is_none() && after.is_some()),
            tokens: count(new) - count(deleted),
        };
        Ok(Ok(KeyWrite {
            changed: ChangedApiKey {
                before,
                after,
                at: now,
            },
            kept_until,
            growth,
        }))
    }

    /// Returns the keys that exist at this time.
    ///
    /// # Errors
    /// The reason why the first invalid key is not valid.
    pub fn existing(keys: &[Self], now: SystemTime) -> Result<Vec<IssuedApiKey>, String> {
        keys.iter()
            .map(|key| key.valid_at(now))
            .filter(Self::exists)
            .map(|key| key.issued())
            .collect()
    }

    fn valid_at(&self, now: SystemTime) -> Self {
        let now = milliseconds(now);
        let mut valid = Self {
            id: self.id.clone(),
            label: self.label.clone(),
            scopes: self.scopes.clone(),
            tokens: self.tokens.clone(),
        };
        valid
            .tokens
            .retain(|token| token.expires_at.is_none_or(|expires| expires > now));
        valid
    }

    fn exists(&self) -> bool {
        !self.tokens.is_empty()
    }

    fn key(&self) -> Result<ApiKey, String> {
        let key = ApiKey::from_stored(&self.id, &self.label, &self.scopes);
        key.map_err(|problem| format!("API key {:?}: {problem}", self.id))
    }

    fn issued(&self) -> Result<IssuedApiKey, String> {
        let tokens = self
            .tokens
            .iter()
            .map(|token| token.issued(&self.id))
            .collect::<Result<_, _>>()?;
        Ok(IssuedApiKey {
            key: self.key()?,
            tokens,
        })
    }
}

impl KeyCounts {
    fn of(rows: &[KeyRows]) -> Self {
        Self {
            keys: count(rows),
            tokens: rows.iter().map(|key| count(&key.tokens)).sum(),
        }
    }
}

impl TokenRow {
    /// The digest, unless it is malformed: then no token has it.
    fn digest(&self) -> Option<ApiKeyDigest> {
        self.digest.as_slice().try_into().ok().map(ApiKeyDigest)
    }

    fn issued(&self, id: &str) -> Result<IssuedToken, String> {
        let digest = self.digest().ok_or("the digest of a token is malformed");
        let token = digest.and_then(|digest| {
            IssuedToken::from_stored(
                digest,
                self.last_four.clone(),
                self.created_at,
                self.expires_at,
            )
        });
        token.map_err(|problem| format!("API key {id:?}: {problem}"))
    }
}

impl From<KeyRows> for StoredKey {
    fn from(rows: KeyRows) -> Self {
        let token =
            |token: &TokenRow| Some((token.digest()?, token.expires_at.map(from_milliseconds)));
        Self {
            id: rows.id.clone(),
            key: rows.key().map(Arc::new),
            tokens: rows.tokens.iter().filter_map(token).collect(),
        }
    }
}

fn is_of(key: Option<&IssuedApiKey>, token: &TokenRow) -> bool {
    let mut tokens = key.iter().flat_map(|key| &key.tokens);
    tokens.any(|other| token.digest == other.digest.0)
}

fn count(items: impl IntoIterator) -> i64 {
    items.into_iter().fold(0, |count, _| count + 1)
}

#[cfg(test)]
mod tests {
    use animal_store_app::{
        NewToken, Scopes,
        test_support::{api_key, api_key_id},
    };

    use super::*;

    #[test]
    fn an_invalid_key_is_named_and_can_only_be_revoked() {
        for (id, label, digest, last_four, problem) in [
            (
                "bad",
                "",
                32,
                "last",
                "API key \"bad\": the label is malformed",
            ),
            (
                "bad",
                "label",
                31,
                "last",
                "API key \"bad\": the digest of a token is malformed",
            ),
            (
                "bad",
                "label",
                32,
                "abcde",
                "API key \"bad\": the last four characters of a token are malformed",
            ),
        ] {
            let stored = || {
                let token = (vec![1; digest], last_four.to_owned(), 0, None);
                let row = (
                    (id.to_owned(), label.to_owned(), String::new()),
                    Some(token),
                );
                KeyRows::collect([Ok::<_, ()>(row)]).unwrap()
            };
            let now = from_milliseconds(5_000);
            assert_eq!(KeyRows::existing(&stored(), now), Err(problem.to_owned()));
            let apply = |change| KeyRows::apply(&change, stored().first(), &[], now);
            let token = NewToken {
                digest: ApiKeyDigest([2; 32]),
                last_four: "last".to_owned(),
                lifetime: None,
            };
            assert_eq!(
                apply(ApiKeyChange::Add(
                    ApiKey {
                        id: api_key_id(id),
                        ..api_key("x")
                    },
                    token
                )),
                Err(problem.to_owned())
            );
            let revoked = apply(ApiKeyChange::Revoke(api_key_id(id)))
                .unwrap()
                .unwrap();
            let before = revoked.changed.before.unwrap().key;
            assert_eq!(
                (before.id.as_str(), before.label.as_str(), before.scopes),
                (id, "unreadable", Scopes::default())
            );
            assert_eq!(revoked.changed.after, None);
            assert_eq!(revoked.growth.tokens, -1);
        }
    }

    #[test]
    fn a_key_with_a_label_that_is_refused_today_works_and_its_label_is_escaped() {
        let row = |label: &str| {
            let key = ("a".to_owned(), label.to_owned(), "read".to_owned());
            Ok::<_, ()>((key, Some((vec![1; 32], "last".to_owned(), 0, None))))
        };
        for (label, shown) in [("a\u{61c}b", "a\\u{61c}b"), ("\u{200b}", "\\u{200b}")] {
            let mut keys = KeyRows::collect([row(label)]).unwrap();
            let existing = KeyRows::existing(&keys, from_milliseconds(5_000)).unwrap();
            assert_eq!(existing[0].key.label.as_str(), shown);
            let stored = StoredKey::from(keys.remove(0));
            assert_eq!((stored.key.is_ok(), stored.tokens.len()), (true, 1));
        }
    }

    #[test]
    fn a_key_has_its_valid_tokens_and_does_not_exist_without_one() {
        let row = |id: &str, token: Option<(u8, Option<i64>)>| {
            let token =
                token.map(|(digest, expires)| (vec![digest; 32], "last".to_owned(), 0, expires));
            Ok::<_, ()>((
                (id.to_owned(), "label".to_owned(), "read".to_owned()),
                token,
            ))
        };
        let rows = [
            row("a", Some((1, Some(5_000)))),
            row("a", Some((2, Some(5_001)))),
            row("a", Some((3, None))),
            row("b", None),
            row("c", Some((4, Some(5_000)))),
            row("d", Some((5, None))),
        ];
        let keys = KeyRows::collect(rows).unwrap();
        assert_eq!(
            keys.iter().map(|key| &*key.id).collect::<Vec<_>>(),
            ["a", "b", "c", "d"]
        );
        let existing = KeyRows::existing(&keys, from_milliseconds(5_000));
        let existing = existing.unwrap().into_iter();
        let digests =
            |key: IssuedApiKey| key.tokens.iter().map(|token| token.digest.0[0]).collect();
        let existing: Vec<(String, Vec<u8>)> = existing
            .map(|key| (key.key.id.to_string(), digests(key)))
            .collect();
        assert_eq!(
            existing,
            [("a".to_owned(), vec![2, 3]), ("d".to_owned(), vec![5])]
        );
    }
}
