use std::time::SystemTime;

use animal_store_app::{ApiKeyId, IdempotencyKey, PetDigest, ports::IdempotencyRecord};
use animal_store_domain::PetId;

/// Builds the record of a row of the table `idempotency_keys`.
///
/// # Errors
/// The first column with an invalid value.
pub fn idempotency_record(
    api_key: &str,
    key_digest: &[u8],
    pet_digest: &[u8],
    pet_id: i64,
    expires_at: SystemTime,
) -> Result<IdempotencyRecord, String> {
    let invalid = |column| {
        format!("table idempotency_keys, API key {api_key:?}, pet {pet_id}: {column} is not valid")
    };
    Ok(IdempotencyRecord {
        key: IdempotencyKey {
            api_key: ApiKeyId::parse(api_key).map_err(|_| invalid("api_key_id"))?,
            digest: key_digest.try_into().map_err(|_| invalid("key_digest"))?,
        },
        pet_digest: PetDigest(pet_digest.try_into().map_err(|_| invalid("pet_digest"))?),
        pet_id: PetId::parse(pet_id).map_err(|_| invalid("pet_id"))?,
        expires_at,
    })
}
