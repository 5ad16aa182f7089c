use std::{
    collections::{BTreeSet, HashMap},
    time::SystemTime,
};

use thiserror::Error;

use crate::{
    ApiKeyId,
    ports::{ApiKeyRecord, ImportedApiKeys},
};

/// Why API keys cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApiKeyImportConflict {
    /// The store has a key with the same id, and another label or other scopes.
    #[error("the target has another API key with the id {0}")]
    Id(ApiKeyId),
    /// Another key of the store has a token of this key.
    #[error("another API key of the target has a token of the key {0}")]
    Token(ApiKeyId),
    /// The store accepts a token of this key that the source does not have, or accepts it for another time.
    #[error(
        "the API key {0} was changed in the source after an earlier copy, and the target accepts its tokens as they \
         were: run animal-store keys revoke {0} with the configuration of the target, and repeat the command"
    )]
    Outdated(ApiKeyId),
}

/// Selects the records that a store with the tokens `existing` lacks and that have not expired at `now`, in their
/// order. This is the rule of every [`ApiKeyTarget`](crate::ports::ApiKeyTarget).
///
/// # Errors
/// [`ApiKeyImportConflict`] if the records contradict the keys of the store.
pub fn missing_tokens(
    existing: &[ApiKeyRecord],
    given: &[ApiKeyRecord],
    now: SystemTime,
) -> Result<(Vec<ApiKeyRecord>, ImportedApiKeys), ApiKeyImportConflict> {
    let valid: Vec<_> = given.iter().filter(|record| record.expires.is_none_or(|expires| expires > now)).collect();
    let by_digest: HashMap<_, _> = valid.iter().map(|record| (record.digest, *record)).collect();
    let by_key: HashMap<_, _> = valid.iter().map(|record| (&record.key.id, &record.key)).collect();
    let (mut present, mut others) = (BTreeSet::new(), BTreeSet::new());
    for stored in existing {
        let id = &stored.key.id;
        let same = by_digest.get(&stored.digest);
        if let Some(same) = same.filter(|same| same.key.id != *id) {
            return Err(ApiKeyImportConflict::Token(same.key.id.clone()));
        }
        match by_key.get(id) {
            None => _ = others.insert(id.clone()),
            Some(key) if **key != stored.key => return Err(ApiKeyImportConflict::Id(id.clone())),
            Some(_) if same.is_some_and(|same| same.expires == stored.expires) => {
                present.insert(stored.digest.as_bytes());
            }
            Some(_) => return Err(ApiKeyImportConflict::Outdated(id.clone())),
        }
    }
    let missing: Vec<_> =
        valid.into_iter().filter(|record| !present.contains(record.digest.as_bytes())).cloned().collect();
    let imported = ImportedApiKeys { added: missing.len(), others: others.into_iter().collect() };
    Ok((missing, imported))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{ApiKey, ApiKeyDigest, ApiKeyLabel, Scopes};

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn token(id: &str, digest: u8, expires: Option<u64>) -> ApiKeyRecord {
        let label = ApiKeyLabel::parse(id).expect("a label");
        ApiKeyRecord {
            key: ApiKey { id: ApiKeyId::new(id), label, scopes: Scopes::ALL },
            digest: ApiKeyDigest::from_bytes([digest; 32]),
            last_four: "last".to_owned(),
            created: at(digest.into()),
            expires: expires.map(at),
        }
    }

    fn missing(existing: &[ApiKeyRecord], given: &[ApiKeyRecord]) -> Result<Vec<ApiKeyRecord>, ApiKeyImportConflict> {
        missing_tokens(existing, given, at(100)).map(|(missing, _)| missing)
    }

    #[test]
    fn valid_tokens_that_the_store_lacks_are_selected_in_their_order() {
        let (old, new, other) = (token("a", 9, Some(101)), token("a", 1, None), token("b", 2, None));
        let expired = token("b", 3, Some(100));
        let given = [old.clone(), new.clone(), other.clone(), expired];
        assert_eq!(missing(&[], &given), Ok(vec![old.clone(), new.clone(), other.clone()]));
        assert_eq!(missing(&[new.clone(), old.clone()], &given), Ok(vec![other.clone()]));
        assert_eq!(missing(&[old, new, other], &given), Ok(vec![]));
    }

    #[test]
    fn keys_of_the_store_alone_are_reported() {
        let (_, imported) = missing_tokens(&[token("mine", 1, None)], &[token("a", 2, None)], at(100)).unwrap();
        assert_eq!(imported, ImportedApiKeys { added: 1, others: vec![ApiKeyId::new("mine")] });
    }

    #[test]
    fn records_that_contradict_the_store_are_refused() {
        let key = token("a", 1, Some(200));
        let other_label = ApiKeyRecord {
            key: ApiKey { label: ApiKeyLabel::parse("other").unwrap(), ..key.key.clone() },
            ..token("a", 2, None)
        };
        let id = || ApiKeyId::new("a");
        for (existing, conflict) in [
            (other_label, ApiKeyImportConflict::Id(id())),
            (token("b", 1, Some(200)), ApiKeyImportConflict::Token(id())),
            (token("a", 2, None), ApiKeyImportConflict::Outdated(id())),
            (token("a", 1, None), ApiKeyImportConflict::Outdated(id())),
        ] {
            assert_eq!(missing(&[existing], std::slice::from_ref(&key)), Err(conflict));
        }
    }
}
