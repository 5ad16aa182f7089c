use std::{sync::Arc, time::SystemTime};

use crate::{
    IssuedApiKey,
    ports::{ApiKeyStore, ApiKeyUse, RecordedUses, StoreFailure},
};

/// Lists the API keys, the public details of their tokens, and their last uses.
pub struct ListApiKeys {
    store: Arc<dyn ApiKeyStore>,
}

/// Selects keys by their uses. A key is listed if it meets each condition that is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UseFilter {
    /// The key was not used since this moment. If it was never used, its newest token is older.
    pub unused_since: Option<SystemTime>,
    /// The key used `getPet`.
    pub uses_get_pet: bool,
}

/// The listed keys.
#[derive(Debug)]
pub struct ApiKeyList {
    /// The keys, in the order of their ids.
    pub keys: Vec<IssuedApiKey>,
    /// The uses of all keys, or the reason why they cannot be read.
    pub uses: Result<RecordedUses, StoreFailure>,
}

impl ListApiKeys {
    /// Creates the use case over a store.
    pub fn new(store: Arc<dyn ApiKeyStore>) -> Self {
        Self { store }
    }

    /// Returns the keys that the filter selects.
    ///
    /// # Errors
    /// If the keys cannot be read. Uses that cannot be read are an error only if the filter needs them.
    pub async fn execute(&self, filter: UseFilter) -> Result<ApiKeyList, StoreFailure> {
        let mut keys = self.store.list().await?;
        let uses = self.store.list_uses().await;
        if filter == UseFilter::default() {
            return Ok(ApiKeyList { keys, uses });
        }
        let uses = uses?;
        keys.retain(|key| filter.selects(key, &uses));
        Ok(ApiKeyList { keys, uses: Ok(uses) })
    }
}

impl UseFilter {
    fn selects(self, IssuedApiKey { key, tokens }: &IssuedApiKey, uses: &RecordedUses) -> bool {
        let last_request = uses.last(&key.id, ApiKeyUse::Request).or(tokens.last().map(|newest| newest.created));
        self.unused_since.is_none_or(|since| last_request.is_some_and(|last| last < since))
            && (!self.uses_get_pet || uses.last(&key.id, ApiKeyUse::GetPet).is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::{ApiKeyDigest, IssuedToken, ports::MockApiKeyStore, test_support::api_key};

    fn day(number: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_hours(24 * number)
    }

    fn key(id: &str, created: &[SystemTime]) -> IssuedApiKey {
        let (digest, last_four) = (ApiKeyDigest([0; 32]), String::new());
        let token = |&created| IssuedToken { digest, last_four: last_four.clone(), created, expires: None };
        IssuedApiKey { key: api_key(id), tokens: created.iter().map(token).collect() }
    }

    /// Lists the keys `new` and `old` by their last uses, and two that were never used.
    async fn list(filter: UseFilter, can_read_uses: bool) -> Result<Vec<String>, StoreFailure> {
        let keys = vec![
            key("new", &[day(1)]),
            key("old", &[day(1)]),
            key("rotated", &[day(1), day(30)]),
            key("unused", &[day(2)]),
        ];
        let uses = [
            ("new", ApiKeyUse::Request, day(40)),
            ("new", ApiKeyUse::GetPet, day(40)),
            ("old", ApiKeyUse::Request, day(10)),
            ("old", ApiKeyUse::GetPet, day(5)),
        ];
        let uses = uses.map(|(id, kind, time)| ((api_key(id).id, kind), time));
        let uses = RecordedUses { since: Some(day(0)), last: uses.into() };
        let uses = if can_read_uses { Ok(uses) } else { Err(StoreFailure::Unavailable("no permission".into())) };
        let mut store = MockApiKeyStore::new();
        store.expect_list().once().return_once(|| Ok(keys));
        store.expect_list_uses().once().return_once(|| uses);
        let list = ListApiKeys::new(Arc::new(store)).execute(filter).await?;
        Ok(list.keys.iter().map(|key| key.key.id.to_string()).collect())
    }

    #[tokio::test]
    async fn a_key_is_unused_since_its_last_use_or_the_creation_of_its_newest_token() {
        for (unused_since, uses_get_pet, listed) in [
            (None, false, &["new", "old", "rotated", "unused"][..]),
            (Some(day(2)), false, &[]),
            (Some(day(10)), false, &["unused"]),
            (Some(day(11)), false, &["old", "unused"]),
            (Some(day(31)), false, &["old", "rotated", "unused"]),
            (Some(day(41)), false, &["new", "old", "rotated", "unused"]),
            (None, true, &["new", "old"]),
            (Some(day(20)), true, &["old"]),
        ] {
            let filter = UseFilter { unused_since, uses_get_pet };
            assert_eq!(list(filter, true).await.unwrap(), listed, "{filter:?}");
            assert_eq!(
                list(filter, false).await.is_ok(),
                filter == UseFilter::default(),
                "only a filter needs the uses"
            );
        }
    }
}
