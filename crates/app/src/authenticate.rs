use std::sync::Arc;

use thiserror::Error;

use crate::{
    ApiKey, ApiToken,
    ports::{ApiKeyDirectory, ApiKeyUse, ApiKeyUses, StoreFailure},
};

/// Finds the API key that a token belongs to, and notes its use.
#[derive(Clone)]
pub struct Authenticate {
    directory: Arc<dyn ApiKeyDirectory>,
    uses: Arc<dyn ApiKeyUses>,
}

/// The token is not accepted.
#[derive(Debug, Error)]
pub enum AuthenticateError {
    /// No API key that is valid now has this token.
    #[error("no valid API key has this token")]
    UnknownKey,
    /// The directory failed.
    #[error("the API key cannot be looked up")]
    Directory(#[from] StoreFailure),
}

impl Authenticate {
    /// Creates the use case over a directory and a record of uses.
    pub fn new(directory: Arc<dyn ApiKeyDirectory>, uses: Arc<dyn ApiKeyUses>) -> Self {
        Self { directory, uses }
    }

    /// Returns the API key of a token. The directory compares digests, never tokens.
    ///
    /// # Errors
    /// [`AuthenticateError::UnknownKey`] if no valid key has the token, [`AuthenticateError::Directory`] if the lookup
    /// failed.
    pub async fn execute(&self, token: &ApiToken) -> Result<Arc<ApiKey>, AuthenticateError> {
        let key = self
            .directory
            .find(token.digest())
            .await?
            .ok_or(AuthenticateError::UnknownKey)?;
        self.uses.note(&key.id, ApiKeyUse::Request);
        Ok(key)
    }

    /// Returns the API key of a token if no lookup is necessary. `None`: only a lookup can tell.
    pub fn execute_from_memory(&self, token: &ApiToken) -> Option<Arc<ApiKey>> {
        let key = self.directory.find_in_memory(&token.digest())?;
        self.uses.note(&key.id, ApiKeyUse::Request);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{
        ports::{MockApiKeyDirectory, MockApiKeyUses},
        test_support::api_key,
    };

    /// Only a key that is found has a use.
    async fn authenticate(
        found: Result<Option<Arc<ApiKey>>, StoreFailure>,
    ) -> Result<Arc<ApiKey>, AuthenticateError> {
        let token = ApiToken::parse("token".into()).unwrap();
        let mut uses = MockApiKeyUses::new();
        if let Ok(Some(key)) = &found {
            uses.expect_note()
                .once()
                .with(eq(key.id.clone()), eq(ApiKeyUse::Request))
                .return_const(());
        }
        let mut directory = MockApiKeyDirectory::new();
        directory
            .expect_find()
            .with(eq(token.digest()))
            .once()
            .return_once(|_| found);
        Authenticate::new(Arc::new(directory), Arc::new(uses))
            .execute(&token)
            .await
    }

    #[tokio::test]
    async fn a_token_is_found_by_its_digest_and_its_key_is_used() {
        let key = Arc::new(api_key("key"));
        assert_eq!(authenticate(Ok(Some(key.clone()))).await.unwrap(), key);
        assert!(matches!(
            authenticate(Ok(None)).await,
            Err(AuthenticateError::UnknownKey)
        ));
        let failed = authenticate(Err(StoreFailure::Timeout)).await;
        assert!(
            matches!(
                failed,
                Err(AuthenticateError::Directory(StoreFailure::Timeout))
            ),
            "not a refusal"
        );
    }

    #[test]
    fn a_key_in_memory_is_used_and_another_token_is_not_looked_up() {
        let token = ApiToken::parse("token".into()).unwrap();
        let key = Arc::new(api_key("key"));
        for found in [Some(key), None] {
            let mut uses = MockApiKeyUses::new();
            uses.expect_note()
                .times(usize::from(found.is_some()))
                .return_const(());
            let mut directory = MockApiKeyDirectory::new();
            directory
                .expect_find_in_memory()
                .with(eq(token.digest()))
                .return_const(found.clone());
            let authenticate = Authenticate::new(Arc::new(directory), Arc::new(uses));
            assert_eq!(authenticate.execute_from_memory(&token), found);
        }
    }
}
