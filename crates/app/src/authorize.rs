//! Authorization of an authenticated API key.
//!
//! A use case on pets takes a [`ReadAccess`] or a [`WriteAccess`], which can be created only from a key with the scope.
//! A driving adapter therefore cannot call such a use case without the check.

use std::sync::Arc;

use thiserror::Error;

use crate::{ApiKey, Scope};

/// Proof that an API key has the scope `read`.
#[derive(Debug, Clone)]
pub struct ReadAccess(());

/// Proof that an API key has the scope `write`.
#[derive(Debug, Clone)]
pub struct WriteAccess(Arc<ApiKey>);

/// The API key does not have this scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the API key does not have the scope {}", .0.as_str())]
pub struct InsufficientScope(pub Scope);

fn require(key: &ApiKey, scope: Scope) -> Result<(), InsufficientScope> {
    if key.scopes.contains(scope) {
        Ok(())
    } else {
        Err(InsufficientScope(scope))
    }
}

impl ReadAccess {
    /// Checks that the key has the scope `read`.
    ///
    /// # Errors
    /// [`InsufficientScope`] if it does not.
    pub fn new(key: &ApiKey) -> Result<Self, InsufficientScope> {
        require(key, Scope::Read).map(Self)
    }
}

impl WriteAccess {
    /// Checks that the key has the scope `write`.
    ///
    /// # Errors
    /// [`InsufficientScope`] if it does not.
    pub fn new(key: Arc<ApiKey>) -> Result<Self, InsufficientScope> {
        require(&key, Scope::Write).map(|()| Self(key))
    }

    /// The API key.
    pub fn key(&self) -> &ApiKey {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::api_key;

    fn key(scopes: &[Scope]) -> Arc<ApiKey> {
        Arc::new(ApiKey {
            scopes: scopes.iter().copied().collect(),
            ..api_key("key")
        })
    }

    #[test]
    fn access_needs_the_scope_of_its_own_name() {
        assert!(ReadAccess::new(&key(&[Scope::Read])).is_ok());
        assert!(WriteAccess::new(key(&[Scope::Write])).is_ok());
        assert_eq!(
            ReadAccess::new(&key(&[Scope::Write])).unwrap_err(),
            InsufficientScope(Scope::Read)
        );
        assert_eq!(
            WriteAccess::new(key(&[Scope::Read])).unwrap_err(),
            InsufficientScope(Scope::Write)
        );
    }
}
