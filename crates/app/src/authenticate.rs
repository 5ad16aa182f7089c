use std::sync::Arc;

use secrecy::SecretString;
use thiserror::Error;

use crate::{
    ApiKey, ApiToken,
    ports::{ApiKeyDirectory, DirectoryError},
};

/// Tells which API key a token belongs to.
#[derive(Clone)]
pub struct Authenticate {
    directory: Arc<dyn ApiKeyDirectory>,
}

/// Why a token is not accepted.
#[derive(Debug, Error)]
pub enum AuthenticateError {
    /// No key that is valid now has this token.
    #[error("no valid API key has this token")]
    UnknownKey,
    /// The directory failed.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

impl Authenticate {
    /// Looks in this directory.
    pub fn new(directory: Arc<dyn ApiKeyDirectory>) -> Self {
        Self { directory }
    }

    /// The key of this token. Only its digest is compared, and only by the directory; a mistyped token of ours is
    /// refused without asking it.
    ///
    /// # Errors
    /// [`AuthenticateError::UnknownKey`] where there is none, [`AuthenticateError::Directory`] where the directory
    /// could not look.
    pub async fn execute(&self, token: SecretString) -> Result<Arc<ApiKey>, AuthenticateError> {
        let token = ApiToken::from_outside(token).ok_or(AuthenticateError::UnknownKey)?;
        self.directory.find(token.digest()).await?.ok_or(AuthenticateError::UnknownKey)
    }
}

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{ApiKeyDigest, ports::MockApiKeyDirectory, test_support::api_key};

    type Found<E> = Result<Option<Arc<ApiKey>>, E>;

    async fn authenticate(answer: Found<DirectoryError>) -> Result<Arc<ApiKey>, AuthenticateError> {
        let token = SecretString::from("token");
        let mut directory = MockApiKeyDirectory::new();
        directory.expect_find().with(eq(ApiKeyDigest::of(&token))).once().return_once(|_| answer);
        Authenticate::new(Arc::new(directory)).execute(token).await
    }

    #[tokio::test]
    async fn a_token_is_looked_up_by_its_digest() {
        let key = Arc::new(api_key("key"));
        assert_eq!(authenticate(Ok(Some(key.clone()))).await.unwrap(), key);
    }

    #[tokio::test]
    async fn a_token_that_no_key_has_is_refused() {
        assert!(matches!(authenticate(Ok(None)).await, Err(AuthenticateError::UnknownKey)));
    }

    #[tokio::test]
    async fn a_mistyped_token_is_refused_without_a_look_up() {
        let directory = MockApiKeyDirectory::new();
        let error = Authenticate::new(Arc::new(directory)).execute("animalstore_mistyped".into()).await.unwrap_err();
        assert!(matches!(error, AuthenticateError::UnknownKey));
    }

    #[tokio::test]
    async fn a_directory_that_cannot_look_is_not_a_refusal() {
        let error = authenticate(Err(DirectoryError::Deadline)).await.unwrap_err();
        assert!(matches!(error, AuthenticateError::Directory(DirectoryError::Deadline)));
    }
}
