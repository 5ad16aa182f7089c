use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

use animal_store_domain::{CreationTime, Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::{
    IdempotencyKey, PetDigest,
    ports::{
        AddPet, AddPetError, AddedPet, BulkStorage, IdempotencyRecord, PetRepository, StorageSnapshot, StoreFailure,
        StoredPet,
    },
};

/// A storage in memory, as the model of every [`BulkStorage`]. The pets in it are also a [`PetRepository`].
#[derive(Debug, Default)]
pub struct MemoryBulkStorage {
    content: Mutex<Content>,
    interruption: Mutex<Option<(usize, bool)>>,
}

#[derive(Debug, Clone, Default)]
struct Content {
    pets: BTreeMap<PetId, StoredPet>,
    records: BTreeMap<IdempotencyKey, IdempotencyRecord>,
    last_id: i64,
}

impl MemoryBulkStorage {
    /// After this number of batches, [`add_pets`](BulkStorage::add_pets) fails once with an unknown outcome. The batch
    /// is written or not.
    ///
    /// # Panics
    /// If a thread panicked within the storage.
    pub fn interrupt_after(&self, batches: usize, is_written: bool) {
        *self.interruption.lock().expect("no thread panics with the lock") = Some((batches, is_written));
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("no thread panics with the lock")
    }

    /// Returns whether this batch, which is interrupted, is written.
    fn interruption(&self) -> Option<bool> {
        let mut interruption = self.interruption.lock().expect("no thread panics with the lock");
        if let Some((left @ 1.., _)) = &mut *interruption {
            *left -= 1;
            return None;
        }
        interruption.take().map(|(_, is_written)| is_written)
    }
}

impl Content {
    fn insert(&mut self, stored: StoredPet) {
        self.last_id = self.last_id.max(stored.pet.id().get());
        self.pets.insert(stored.pet.id(), stored);
    }
}

fn now() -> CreationTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    CreationTime::parse(i64::try_from(since.as_micros()).expect("before 9999")).expect("after 1970")
}

fn bound<T>(after: Option<T>) -> Bound<T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}

#[async_trait]
impl BulkStorage for MemoryBulkStorage {
    async fn check_writable(&self) -> Result<(), StoreFailure> {
        Ok(())
    }

    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, StoreFailure> {
        Ok(Box::new(self.lock().clone()))
    }

    async fn add_pets(&self, pets: Vec<StoredPet>) -> Result<bool, StoreFailure> {
        let mut content = self.lock();
        if pets.iter().any(|stored| content.pets.contains_key(&stored.pet.id())) {
            return Ok(false);
        }
        let interruption = self.interruption();
        if interruption != Some(false) {
            for stored in pets {
                content.insert(stored);
            }
        }
        interruption.map_or(Ok(true), |_| Err(StoreFailure::OutcomeUnknown("interrupted".into())))
    }

    async fn add_idempotency_records(&self, records: Vec<IdempotencyRecord>) -> Result<(), StoreFailure> {
        let mut content = self.lock();
        for record in records {
            content.records.entry(record.key.clone()).or_insert(record);
        }
        Ok(())
    }
}

#[async_trait]
impl StorageSnapshot for Content {
    async fn pets(&self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, StoreFailure> {
        let pets = self.pets.range((bound(after), Bound::Unbounded));
        Ok(pets.take(limit).map(|(_, stored)| stored.clone()).collect())
    }

    async fn idempotency_records(
        &self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, StoreFailure> {
        let records = self.records.range((bound(after), Bound::Unbounded)).map(|(_, record)| record);
        let now = SystemTime::now();
        Ok(records.filter(|record| record.expires_at > now).take(limit).cloned().collect())
    }
}

#[async_trait]
impl PetRepository for MemoryBulkStorage {
    async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
    ) -> Result<Vec<Pet>, StoreFailure> {
        let content = self.lock();
        let pets = content.pets.range((bound(after), Bound::Unbounded)).map(|(_, stored)| &stored.pet);
        Ok(pets.filter(|pet| status.is_none() || pet.new_pet().status() == status).take(limit).cloned().collect())
    }

    async fn find(&self, id: PetId) -> Result<Option<Pet>, StoreFailure> {
        Ok(self.lock().pets.get(&id).map(|stored| stored.pet.clone()))
    }

    async fn add(&self, AddPet { pet, idempotency_key }: AddPet) -> Result<AddedPet, AddPetError> {
        let mut content = self.lock();
        let pet_digest = PetDigest::from_pet(&pet);
        if let Some(record) = idempotency_key.as_ref().and_then(|key| content.records.get(key)) {
            return if record.pet_digest == pet_digest {
                Ok(AddedPet { pet: Pet::new(record.pet_id, pet), replayed: true })
            } else {
                Err(AddPetError::IdempotencyMismatch)
            };
        }
        let pet = Pet::new(PetId::parse(content.last_id + 1).expect("1 or greater"), pet);
        content.insert(StoredPet { pet: pet.clone(), created_at: now() });
        if let Some(key) = idempotency_key {
            let expires_at = SystemTime::now() + Duration::from_hours(24);
            let record = IdempotencyRecord { key: key.clone(), pet_digest, pet_id: pet.id(), expires_at };
            content.records.insert(key, record);
        }
        Ok(AddedPet { pet, replayed: false })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::test_support::contract::bulk_storage::BulkAccess;

    async fn setup() -> (BulkAccess, ()) {
        let storage = Arc::new(MemoryBulkStorage::default());
        (BulkAccess { bulk: storage.clone(), pets: storage }, ())
    }

    crate::bulk_storage_contract!(setup);
}
