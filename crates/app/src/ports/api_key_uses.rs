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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// When keys were last used, to the minute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedUses {
    /// When the record began: earlier uses are unknown. `None`: nothing was recorded yet.
    pub since: Option<SystemTime>,
    /// The last use of each kind of each key that was used.
    pub last: HashMap<(ApiKeyId, ApiKeyUse), SystemTime>,
}

impl RecordedUses {
    /// Returns the last use of a key. `None`: none since the record began.
    pub fn last(&self, id: &ApiKeyId, kind: ApiKeyUse) -> Option<SystemTime> {
        self.last.get(&(id.clone(), kind)).copied()
    }
}
