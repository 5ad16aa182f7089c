use std::{sync::Arc, time::SystemTime};

use crate::{
    IssuedApiKey,
    ports::{ApiKeyStore, RecordedUses, StoreFailure},
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
        let Some(newest) = tokens.last() else { return false };
        let last = uses.last(&key.id);
        let last_request = last.request.unwrap_or(newest.created);
        self.unused_since.is_none_or(|since| last_request < since) && (!self.uses_get_pet || last.get_pet.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::{
        ApiKeyDigest, IssuedToken,
        ports::{LastUses, MockApiKeyStore},
        test_support::api_key,
    };

    fn day(number: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_hours(24 * number)
    }

    fn key(id: &str, created: &[SystemTime]) -> IssuedApiKey {
        let digest = ApiKeyDigest::from_bytes([0; 32]);
        let token =
            |created: &SystemTime| IssuedToken { digest, last_four: String::new(), created: *created, expires: None };
        IssuedApiKey { key: api_key(id), tokens: created.iter().map(token).collect() }
    }

    fn recorded_uses() -> RecordedUses {
        let used = |id: &str, request, get_pet: Option<_>| {
            (api_key(id).id, LastUses { request: Some(day(request)), get_pet: get_pet.map(day) })
        };
        RecordedUses { since: Some(day(0)), by_key: [used("new", 40, Some(40)), used("old", 10, Some(5))].into() }
    }

    /// Lists the keys `new` and `old` by the days of their last uses, and two that were never used.
    async fn list(filter: UseFilter, uses: Result<RecordedUses, StoreFailure>) -> Result<Vec<String>, String> {
        let keys = vec![
            key("new", &[day(1)]),
            key("old", &[day(1)]),
            key("rotated", &[day(1), day(30)]),
            key("unused", &[day(2)]),
        ];
        let mut store = MockApiKeyStore::new();
        store.expect_list().once().return_once(|| Ok(keys));
        store.expect_list_uses().once().return_once(|| uses);
        let list = ListApiKeys::new(Arc::new(store)).execute(filter).await.map_err(|error| error.to_string())?;
        Ok(list.keys.iter().map(|key| key.key.id.to_string()).collect())
    }

    #[tokio::test]
    async fn without_a_filter_every_key_is_listed_even_if_the_uses_cannot_be_read() {
        let all = ["new", "old", "rotated", "unused"];
        assert_eq!(list(UseFilter::default(), Ok(recorded_uses())).await.unwrap(), all);
        let unreadable = Err(StoreFailure::Unavailable("no permission".into()));
        assert_eq!(list(UseFilter::default(), unreadable).await.unwrap(), all);
    }

    #[tokio::test]
    async fn a_key_is_unused_since_its_last_use_or_the_creation_of_its_newest_token() {
        for (since, unused) in [
            (day(2), &[][..]),
            (day(10), &["unused"]),
            (day(11), &["old", "unused"]),
            (day(31), &["old", "rotated", "unused"]),
            (day(41), &["new", "old", "rotated", "unused"]),
        ] {
            let filter = UseFilter { unused_since: Some(since), uses_get_pet: false };
            assert_eq!(list(filter, Ok(recorded_uses())).await.unwrap(), unused, "{since:?}");
        }
    }

    #[tokio::test]
    async fn the_keys_that_used_getpet_can_be_listed() {
        let filter = UseFilter { unused_since: None, uses_get_pet: true };
        assert_eq!(list(filter, Ok(recorded_uses())).await.unwrap(), ["new", "old"]);
        let both = UseFilter { unused_since: Some(day(20)), ..filter };
        assert_eq!(list(both, Ok(recorded_uses())).await.unwrap(), ["old"]);
    }

    #[tokio::test]
    async fn a_filter_fails_if_the_uses_cannot_be_read() {
        for filter in [
            UseFilter { unused_since: Some(day(1)), uses_get_pet: false },
            UseFilter { unused_since: None, uses_get_pet: true },
        ] {
            let unreadable = Err(StoreFailure::Unavailable("no permission".into()));
            list(filter, unreadable).await.unwrap_err();
        }
    }
}
