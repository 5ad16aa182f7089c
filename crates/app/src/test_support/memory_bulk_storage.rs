use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
    sync::{Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

use animal_store_domain::{CreationTime, NewPet, Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::{
    IdempotencyKey, PetDigest,
    ports::{
        AddPet, AddPetError, AddedBulkPet, AddedPet, BulkPet, BulkStorage, BulkStorageError, IdempotencyRecord,
        ImportProgress, ImportSource, PetBatch, PetRepository, StorageError, StorageSnapshot, StoredPet,
    },
};

/// A storage in memory, as the model of every [`BulkStorage`]. The pets in it are also a [`PetRepository`].
#[derive(Debug, Default)]
pub struct MemoryBulkStorage {
    content: Mutex<Content>,
    interruption: Mutex<Option<Interruption>>,
}

#[derive(Debug, Clone, Copy)]
struct Interruption {
    batches: usize,
    is_written: bool,
}

#[derive(Debug, Clone, Default)]
struct Content {
    pets: BTreeMap<PetId, StoredPet>,
    records: BTreeMap<IdempotencyKey, IdempotencyRecord>,
    imports: HashMap<ImportSource, ImportProgress>,
    last_id: i64,
}

impl MemoryBulkStorage {
    /// After this number of batches, [`add_pets`](BulkStorage::add_pets) fails once with an unknown outcome. The batch
    /// is written or not.
    ///
    /// # Panics
    /// If a thread panicked within the storage.
    pub fn interrupt_after(&self, batches: usize, is_written: bool) {
        *self.interruption.lock().expect("no thread panics with the lock") = Some(Interruption { batches, is_written });
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("no thread panics with the lock")
    }

    /// Returns the interruption of this batch.
    fn interruption(&self) -> Option<Interruption> {
        let mut interruption = self.interruption.lock().expect("no thread panics with the lock");
        match &mut *interruption {
            Some(Interruption { batches: 0, .. }) => interruption.take(),
            Some(later) => {
                later.batches -= 1;
                None
            }
            None => None,
        }
    }
}

impl Content {
    fn add(&mut self, bulk: &BulkPet) -> AddedBulkPet {
        if let Some(stored) = bulk.id.and_then(|id| self.pets.get(&id)) {
            let is_same = *stored.pet.new_pet() == bulk.pet
                && bulk.created_at.is_none_or(|created_at| created_at == stored.created_at);
            return if is_same { AddedBulkPet::Exists } else { AddedBulkPet::IdTaken };
        }
        AddedBulkPet::Added(self.insert(bulk.id, bulk.pet.clone(), bulk.created_at).id())
    }

    fn insert(&mut self, id: Option<PetId>, pet: NewPet, created_at: Option<CreationTime>) -> Pet {
        let id = id.unwrap_or_else(|| PetId::parse(self.last_id + 1).expect("1 or greater"));
        let pet = Pet::new(id, pet);
        self.last_id = self.last_id.max(id.get());
        self.pets.insert(id, StoredPet { pet: pet.clone(), created_at: created_at.unwrap_or_else(now) });
        pet
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
    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, BulkStorageError> {
        Ok(Box::new(self.lock().clone()))
    }

    async fn add_pets(&self, batch: PetBatch) -> Result<Vec<AddedBulkPet>, BulkStorageError> {
        let ids: Vec<_> = batch.pets.iter().filter_map(|pet| pet.id).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "the ids of a batch are distinct");
        let mut content = self.lock();
        let mut changed = content.clone();
        if let Some(step) = batch.step
            && changed.imports.insert(step.source, step.to) != step.from
        {
            return Err(BulkStorageError::ImportConflict);
        }
        let added: Vec<_> = batch.pets.iter().map(|pet| changed.add(pet)).collect();
        if let Some(taken) = added.iter().position(|added| *added == AddedBulkPet::IdTaken)
            && batch.refuse_taken_ids
        {
            return Err(BulkStorageError::IdTaken(batch.pets[taken].id.expect("a taken id")));
        }
        let interruption = self.interruption();
        if interruption.is_none_or(|interruption| interruption.is_written) {
            *content = changed;
        }
        match interruption {
            Some(_) => Err(BulkStorageError::OutcomeUnknown("interrupted".into())),
            None => Ok(added),
        }
    }

    async fn add_idempotency_records(&self, records: Vec<IdempotencyRecord>) -> Result<(), BulkStorageError> {
        let mut content = self.lock();
        for record in records {
            content.records.entry(record.key.clone()).or_insert(record);
        }
        Ok(())
    }

    async fn import_progress(&self, source: ImportSource) -> Result<Option<ImportProgress>, BulkStorageError> {
        Ok(self.lock().imports.get(&source).copied())
    }

    async fn finish_import(&self, source: ImportSource) -> Result<(), BulkStorageError> {
        if let Some(progress) = self.lock().imports.get_mut(&source) {
            progress.finished = true;
        }
        Ok(())
    }
}

#[async_trait]
impl StorageSnapshot for Content {
    async fn pets(&mut self, after: Option<PetId>, limit: usize) -> Result<Vec<StoredPet>, BulkStorageError> {
        let pets = self.pets.range((bound(after), Bound::Unbounded));
        Ok(pets.take(limit).map(|(_, stored)| stored.clone()).collect())
    }

    async fn idempotency_records(
        &mut self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, BulkStorageError> {
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
    ) -> Result<Vec<Pet>, StorageError> {
        let content = self.lock();
        let pets = content.pets.range((bound(after), Bound::Unbounded)).map(|(_, stored)| &stored.pet);
        Ok(pets.filter(|pet| status.is_none() || pet.new_pet().status() == status).take(limit).cloned().collect())
    }

    async fn find(&self, id: PetId) -> Result<Option<Pet>, StorageError> {
        Ok(self.lock().pets.get(&id).map(|stored| stored.pet.clone()))
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        let mut content = self.lock();
        let pet_digest = PetDigest::from_pet(&request.pet);
        if let Some(record) = request.idempotency_key.as_ref().and_then(|key| content.records.get(key)) {
            return if record.pet_digest == pet_digest {
                Ok(AddedPet { pet: Pet::new(record.pet_id, request.pet), replayed: true })
            } else {
                Err(AddPetError::IdempotencyMismatch)
            };
        }
        let pet = content.insert(None, request.pet, None);
        if let Some(key) = request.idempotency_key {
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
