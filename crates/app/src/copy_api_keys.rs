use std::sync::Arc;

use crate::ports::{ApiKeyRecord, ApiKeyStoreError, BulkApiKeys};

/// Copies the API keys of a store, with their tokens, to another store.
pub struct CopyApiKeys {
    from: Arc<dyn BulkApiKeys>,
    to: Arc<dyn BulkApiKeys>,
}

impl CopyApiKeys {
    /// Creates the use case over both stores.
    pub fn new(from: Arc<dyn BulkApiKeys>, to: Arc<dyn BulkApiKeys>) -> Self {
        Self { from, to }
    }

    /// Adds the tokens that are missing and returns their number. May be repeated after every error.
    ///
    /// # Errors
    /// See [`ApiKeyStoreError`]. [`ApiKeyStoreError::Conflict`] if the target has another key with the same id or the
    /// same token, or if a key has a token in the target that the source does not have, or that expires at another
    /// time: it was rotated or revoked after an earlier copy. In the last two cases the missing tokens were added.
    pub async fn execute(&self) -> Result<usize, ApiKeyStoreError> {
        let source = self.from.export().await?;
        let added = self.to.import(source.clone()).await?;
        let target = self.to.export().await?;
        match target.iter().find(|record| is_outdated(record, &source)) {
            Some(record) => Err(ApiKeyStoreError::Conflict(
                format!(
                    "the key {id} was changed in the source after an earlier copy, and the target accepts its tokens \
                     as they were: run animal-store keys revoke {id} with the configuration of the target, and repeat \
                     the command",
                    id = record.key.id
                )
                .into(),
            )),
            None => Ok(added),
        }
    }
}

/// Whether the source has the key of this token, but not the token with the same expiry.
fn is_outdated(record: &ApiKeyRecord, source: &[ApiKeyRecord]) -> bool {
    let mut tokens = source.iter().filter(|token| token.key.id == record.key.id).peekable();
    tokens.peek().is_some() && !tokens.any(|token| token.digest == record.digest && token.expires == record.expires)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::{ApiKey, ApiKeyDigest, ApiKeyId, ApiKeyLabel, Scopes, ports::MockBulkApiKeys};

    fn token(id: &str, token: u8, expires: Option<u64>) -> ApiKeyRecord {
        ApiKeyRecord {
            key: ApiKey {
                id: ApiKeyId::new(id),
                label: ApiKeyLabel::parse("label").unwrap(),
                scopes: Scopes::default(),
            },
            digest: ApiKeyDigest::from_bytes([token; 32]),
            last_four: "last".to_owned(),
            created: SystemTime::UNIX_EPOCH,
            expires: expires.map(|hours| SystemTime::UNIX_EPOCH + Duration::from_hours(hours)),
        }
    }

    /// Copies the tokens to a target that has these tokens after the import.
    async fn copy(source: Vec<ApiKeyRecord>, target: Vec<ApiKeyRecord>) -> Result<usize, ApiKeyStoreError> {
        let (mut from, mut to) = (MockBulkApiKeys::new(), MockBulkApiKeys::new());
        from.expect_export().return_once(|| Ok(source));
        to.expect_import().once().returning(|_| Ok(1));
        to.expect_export().return_once(|| Ok(target));
        CopyApiKeys::new(Arc::new(from), Arc::new(to)).execute().await
    }

    #[tokio::test]
    async fn a_key_that_was_changed_in_the_source_is_named() {
        for (source, target) in [
            (vec![token("a", 1, None)], vec![token("a", 1, None), token("a", 2, None)]),
            (vec![token("a", 1, Some(1)), token("a", 2, None)], vec![token("a", 1, None), token("a", 2, None)]),
        ] {
            let error = copy(source, target).await.unwrap_err();
            let ApiKeyStoreError::Conflict(cause) = error else { panic!("{error}") };
            assert!(cause.to_string().contains("animal-store keys revoke a "), "{cause}");
        }
    }

    #[tokio::test]
    async fn a_key_that_only_the_target_has_is_no_error() {
        let source = vec![token("a", 1, None), token("a", 3, Some(1))];
        let target = vec![token("a", 1, None), token("b", 2, None)];
        assert_eq!(copy(source, target).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn the_exported_keys_are_imported() {
        let (mut from, mut to) = (MockBulkApiKeys::new(), MockBulkApiKeys::new());
        from.expect_export().once().returning(|| Ok(Vec::new()));
        to.expect_import().once().withf(Vec::is_empty).returning(|_| Ok(3));
        to.expect_export().once().returning(|| Ok(Vec::new()));
        assert_eq!(CopyApiKeys::new(Arc::new(from), Arc::new(to)).execute().await.unwrap(), 3);
    }

    #[tokio::test]
    async fn if_the_keys_cannot_be_read_nothing_is_imported() {
        let mut from = MockBulkApiKeys::new();
        from.expect_export().returning(|| Err(ApiKeyStoreError::Unavailable("gone".into())));
        let error = CopyApiKeys::new(Arc::new(from), Arc::new(MockBulkApiKeys::new())).execute().await.unwrap_err();
        assert!(matches!(error, ApiKeyStoreError::Unavailable(_)), "{error}");
    }
}
