use std::{collections::HashMap, time::SystemTime};

use crate::ApiKeyId;

/// Record of the uses of API keys.
///
/// - A note neither blocks nor fails: an adapter keeps it in memory and writes it later, in a batch. A process that is
///   killed loses the notes since its last write.
/// - [`ApiKeyStore::list_uses`](super::ApiKeyStore::list_uses) returns the written uses. Of several uses of a key,
///   noted by several instances, it returns the latest.
/// - Memory is bounded: if too many keys are used between two writes, some of their uses are not recorded.
#[cfg_attr(any(test, feature = "test-support"), mockall::automock)]
pub trait ApiKeyUses: Send + Sync {
    /// Notes that a key was used now.
    fn note(&self, id: &ApiKeyId, kind: ApiKeyUse);
}

/// What an API key was used for. The kinds are recorded separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyUse {
    /// Any request.
    Request,
    /// `getPet`, which is deprecated.
    GetPet,
}

impl ApiKeyUse {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 2] = [Self::Request, Self::GetPet];
}

/// The recorded uses of all keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedUses {
    /// When the record began: earlier uses are unknown. `None`: nothing was recorded yet.
    pub since: Option<SystemTime>,
    /// The last uses of each key that was used.
    pub by_key: HashMap<ApiKeyId, LastUses>,
}

/// When a key was last used, to the minute. `None`: not since the record began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastUses {
    /// Last request.
    pub request: Option<SystemTime>,
    /// Last request for `getPet`.
    pub get_pet: Option<SystemTime>,
}

impl RecordedUses {
    /// Returns the last uses of a key.
    pub fn last(&self, id: &ApiKeyId) -> LastUses {
        self.by_key.get(id).copied().unwrap_or_default()
    }
}
