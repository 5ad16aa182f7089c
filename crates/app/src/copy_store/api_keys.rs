use std::collections::HashSet;

use super::{CopyError, target};
use crate::{ApiKeyChange, ApiKeyId, ports::ApiKeyStore};

/// The API keys of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedApiKeys {
    /// Number of tokens that this call added to the target.
    pub added: usize,
    /// Keys of the target that the source does not have, in the order of their ids.
    pub others: Vec<ApiKeyId>,
}

/// Imports each key of a store. One that contradicts the target ends the copy.
pub(super) async fn copy(from: &dyn ApiKeyStore, to: &dyn ApiKeyStore) -> Result<ImportedApiKeys, CopyError> {
    let keys = from.list().await.map_err(CopyError::Source)?;
    let ids: HashSet<_> = keys.iter().map(|key| key.key.id.clone()).collect();
    let mut imported = ImportedApiKeys::default();
    for key in keys {
        let changed = to.change(ApiKeyChange::Import(key)).await.map_err(target)?;
        let [before, after] = [changed.before, changed.after].map(|key| key.map_or(0, |key| key.tokens.len()));
        imported.added += after.saturating_sub(before);
    }
    let keys = to.list().await.map_err(target)?;
    imported.others = keys.into_iter().map(|key| key.key.id).filter(|id| !ids.contains(id)).collect();
    Ok(imported)
}
