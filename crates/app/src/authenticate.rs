use std::sync::Arc;

use thiserror::Error;

use crate::{
    ApiKey, ApiToken,
    ports::{ApiKeyDirectory, ApiKeyDirectoryError},
};

/// Finds the API key that a token belongs to.
#[derive(Clone)]
pub struct Authenticate {
    directory: Arc<dyn ApiKeyDirectory>,
}

/// The token is not accepted.
#[derive(Debug, Error)]
pub enum AuthenticateError {
    /// No API key that is valid now has this token.
    #[error("no valid API key has this token")]
    UnknownKey,
    /// The directory failed.
    #[error(transparent)]
    Directory(#[from] ApiKeyDirectoryError),
}

impl Authenticate {
    /// Creates the use case over a directory.
    pub fn new(directory: Arc<dyn ApiKeyDirectory>) -> Self {
        Self { directory }
    }

    /// Returns the API key of a token. The directory compares digests, never tokens.
    ///
    /// # Errors
    /// [`AuthenticateError::UnknownKey`] if no valid key has the token, [`AuthenticateError::Directory`] if the lookup
    /// failed.
    pub async fn execute(&self, token: &ApiToken) -> Result<Arc<ApiKey>, AuthenticateError> {
        self.directory.find(token.digest()).await?.ok_or(AuthenticateError::UnknownKey)
    }
}

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{ports::MockApiKeyDirectory, test_support::api_key};

    type Found = Result<Option<Arc<ApiKey>>, ApiKeyDirectoryError>;

    async fn authenticate(found: Found) -> Result<Arc<ApiKey>, AuthenticateError> {
        let token = ApiToken::parse("token".into()).unwrap();
        let mut directory = MockApiKeyDirectory::new();
        directory.expect_find().with(eq(token.digest())).once().return_once(|_| found);
        Authenticate::new(Arc::new(directory)).execute(&token).await
    }

    #[tokio::test]
    async fn a_token_is_looked_up_by_its_digest() {
        let key = Arc::new(api_key("key"));
        assert_eq!(authenticate(Ok(Some(key.clone()))).await.unwrap(), key);
    }

    #[tokio::test]
    async fn a_token_of_no_key_is_refused() {
        assert!(matches!(authenticate(Ok(None)).await, Err(AuthenticateError::UnknownKey)));
    }

    #[tokio::test]
    async fn a_failed_lookup_is_not_a_refusal() {
        let error = authenticate(Err(ApiKeyDirectoryError::Timeout)).await.unwrap_err();
        assert!(matches!(error, AuthenticateError::Directory(ApiKeyDirectoryError::Timeout)));
    }
}
