use animal_store_app::ports::{BulkStorage, BulkStorageError};
use animal_store_domain::PetId;

use super::Total;

/// Estimates the number of pets in a storage by the greatest id, which it finds by bisection: 63 reads of one row.
///
/// # Errors
/// If the storage cannot be read.
pub(in crate::cli) async fn estimate(storage: &dyn BulkStorage) -> Result<Total, BulkStorageError> {
    let mut snapshot = storage.snapshot().await?;
    // Ids above `low` may exist, ids above `high` do not.
    let (mut low, mut high) = (0, i64::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        let after = PetId::parse(middle).ok();
        match snapshot.pets(after, 1).await?.first() {
            Some(pet) => low = pet.pet.id().get(),
            None => high = middle,
        }
    }
    Ok(Total::Pets(u64::try_from(low).unwrap_or_default()))
}
