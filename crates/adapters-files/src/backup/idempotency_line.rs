use animal_store_app::{ApiKeyId, IdempotencyKey, PetDigest, ports::IdempotencyRecord};
use animal_store_domain::PetId;
use serde::{Deserialize, Serialize};

use super::hex_digest;
use crate::time;

/// A line of a backup: a record of an idempotency key.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IdempotencyLine {
    idempotency_key: IdempotencyObject,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct IdempotencyObject {
    api_key_id: String,
    key_sha256: String,
    pet_sha256: String,
    pet_id: i64,
    expires_at: String,
}

impl IdempotencyLine {
    pub(super) fn from_record(record: &IdempotencyRecord) -> Self {
        Self {
            idempotency_key: IdempotencyObject {
                api_key_id: record.key.api_key().to_string(),
                key_sha256: hex::encode(record.key.digest()),
                pet_sha256: hex::encode(record.pet_digest.as_bytes()),
                pet_id: record.pet_id.get(),
                expires_at: time::format(record.expires_at).to_string(),
            },
        }
    }

    /// Returns the record. `None`: a value is not valid.
    pub(super) fn into_record(self) -> Option<IdempotencyRecord> {
        let object = self.idempotency_key;
        Some(IdempotencyRecord {
            key: IdempotencyKey::from_parts(
                ApiKeyId::parse(&object.api_key_id).ok()?,
                hex_digest::parse(&object.key_sha256)?,
            ),
            pet_digest: PetDigest::from_bytes(hex_digest::parse(&object.pet_sha256)?),
            pet_id: PetId::parse(object.pet_id).ok()?,
            expires_at: time::parse(&object.expires_at)?,
        })
    }
}
