use animal_store_app::BackupSummary;
use serde::{Deserialize, Serialize};

/// The last line of a backup.
#[derive(Serialize, Deserialize)]
pub(super) struct EndLine {
    end: EndObject,
}

#[derive(Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct EndObject {
    pets: u64,
    idempotency_keys: u64,
    api_keys: u64,
    /// Digest of all lines before, with their ends.
    sha256: String,
}

impl EndLine {
    pub(super) fn new(summary: BackupSummary, sha256: String) -> Self {
        let BackupSummary { pets, idempotency_records, api_keys, .. } = summary;
        Self { end: EndObject { pets, idempotency_keys: idempotency_records, api_keys, sha256 } }
    }

    pub(super) fn matches(&self, other: &Self) -> bool {
        self.end == other.end
    }
}
