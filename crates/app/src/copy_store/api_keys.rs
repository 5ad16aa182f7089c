use std::{collections::HashSet, sync::Arc};

use super::error::{CopyError, target};
use crate::{ApiKeyChange, ApiKeyId, AuditEntry, IssuedApiKey, ports::ApiKeyStore};

/// The stores of the API keys that are copied.
pub struct ApiKeyStores {
    /// The source.
    pub from: Arc<dyn ApiKeyStore>,
    /// The target.
    pub to: Arc<dyn ApiKeyStore>,
}

/// The API keys of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedApiKeys {
    /// Number of tokens that this call added to the target.
    pub added: usize,
    /// Keys of the target that the source does not have, in the order of their ids.
    pub others: Vec<ApiKeyId>,
    /// Keys that this call added although they had been revoked in the target, in the order of their ids.
    pub valid_again: Vec<ApiKeyId>,
}

impl ApiKeyStores {
    /// Imports each key, and the entries of the audit log that the target lacks. A key that contradicts the target ends
    /// the copy.
    pub(super) async fn copy(&self) -> Result<ImportedApiKeys, CopyError> {
        let keys = self.from.list().await.map_err(CopyError::Source)?;
        let log = self.to.audit_log().await.map_err(target)?;
        let mut others = Vec::new();
        let mut valid_again = Vec::new();
        let mut added = 0;
        for key in &keys {
            let id = &key.key.id;
            let imported = self.import(key.clone()).await?;
            added += imported;
            let is_revocation = |entry: &AuditEntry| entry.is_revocation() && entry.key.id == *id;
            if imported > 0 && log.iter().any(is_revocation) {
                valid_again.push(id.clone());
            }
        }
        self.copy_audit_log(log).await?;
        let ids: HashSet<_> = keys.into_iter().map(|key| key.key.id).collect();
        for copied in self.to.list().await.map_err(target)? {
            let id = copied.key.id;
            if !ids.contains(&id) {
                others.push(id);
            }
        }
        Ok(ImportedApiKeys {
            added,
            others,
            valid_again,
        })
    }

    /// Returns the number of tokens that were added.
    async fn import(&self, key: IssuedApiKey) -> Result<usize, CopyError> {
        let imported = self.to.change(ApiKeyChange::Import(key), "").await;
        let changed = imported.map_err(target)?;
        let before = changed.before.map_or(0, |key| key.tokens.len());
        let after = changed.after.map_or(0, |key| key.tokens.len());
        Ok(after.saturating_sub(before))
    }

    /// `copied`: the entries that the target has.
    async fn copy_audit_log(&self, copied: Vec<AuditEntry>) -> Result<(), CopyError> {
        let mut entries = self.from.audit_log().await.map_err(CopyError::Source)?;
        let known: HashSet<AuditEntry> = copied.into_iter().collect();
        entries.retain(|entry| !known.contains(entry));
        self.to.append_audit(entries).await.map_err(target)
    }
}
