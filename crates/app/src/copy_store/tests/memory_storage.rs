use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Unbounded},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use animal_store_domain::PetId;
use async_trait::async_trait;

use crate::{
    IdempotencyKey,
    ports::{BulkStorage, IdempotencyRecord, StorageSnapshot, StoreFailure, StoredPet},
    test_support::stored_pets,
};

/// A storage in memory.
#[derive(Debug, Default)]
pub(super) struct MemoryStorage {
    content: Mutex<Content>,
    /// Whether a copy has begun and not ended.
    pub(super) is_marked: AtomicBool,
    /// `is_marked` at each snapshot.
    pub(super) marks: Mutex<Vec<bool>>,
    /// The next batch but this many is interrupted after it was written (`true`), or before.
    pub(super) interruption: Mutex<Option<(usize, bool)>>,
    /// The migrations of a newer program.
    pub(super) newer_migrations: Mutex<Vec<String>>,
    /// The next addition of another process.
    pub(super) addition: Mutex<Option<Addition>>,
}

/// When another process adds the pet with this id.
#[derive(Debug, Clone, Copy)]
pub(super) enum Addition {
    /// Before the snapshot with this number, from 1.
    BeforeSnapshot(usize, i64),
    /// Before the next batch.
    BeforeBatch(i64),
}

#[derive(Debug, Clone, Default)]
struct Content {
    pets: BTreeMap<PetId, StoredPet>,
    records: BTreeMap<IdempotencyKey, IdempotencyRecord>,
    last_id: Option<PetId>,
}

impl MemoryStorage {
    /// A storage with these pets.
    pub(super) fn of(ids: impl IntoIterator<Item = i64>) -> Arc<Self> {
        let storage = Self::default();
        assert!(storage.add(stored_pets(ids)));
        Arc::new(storage)
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap()
    }

    /// Returns all pets.
    pub(super) fn pets(&self) -> Vec<StoredPet> {
        self.content().pets.values().cloned().collect()
    }

    /// Returns the greatest id that was given out.
    pub(super) fn last_id(&self) -> Option<PetId> {
        self.content().last_id
    }

    /// Returns all records of idempotency keys.
    pub(super) fn records(&self) -> Vec<IdempotencyRecord> {
        self.content().records.values().cloned().collect()
    }

    /// Adds pets, unless one of the ids is taken.
    pub(super) fn add(&self, pets: Vec<StoredPet>) -> bool {
        let mut content = self.content();
        let is_taken = |stored: &StoredPet| content.pets.contains_key(&stored.pet.id());
        if pets.iter().any(is_taken) {
            return false;
        }
        let numbered = pets.into_iter().map(|stored| (stored.pet.id(), stored));
        content.pets.extend(numbered);
        true
    }
}

#[async_trait]
impl BulkStorage for MemoryStorage {
    async fn newer_migrations(&self) -> Result<Vec<String>, StoreFailure> {
        Ok(self.newer_migrations.lock().unwrap().clone())
    }

    async fn check_writable(&self) -> Result<(), StoreFailure> {
        Ok(())
    }

    async fn mark_copy(&self, is_unfinished: bool) -> Result<(), StoreFailure> {
        self.is_marked.store(is_unfinished, Relaxed);
        Ok(())
    }

    async fn snapshot(&self) -> Result<Box<dyn StorageSnapshot>, StoreFailure> {
        let is_marked = self.is_marked.load(Relaxed);
        self.marks.lock().unwrap().push(is_marked);
        let mut addition = self.addition.lock().unwrap();
        match *addition {
            Some(Addition::BeforeSnapshot(1, id)) => assert!(self.add(stored_pets([id]))),
            Some(Addition::BeforeSnapshot(number, id)) => {
                *addition = Some(Addition::BeforeSnapshot(number - 1, id));
            }
            _ => {}
        }
        Ok(Box::new(self.content().clone()))
    }

    async fn skip_ids(&self, last: PetId) -> Result<(), StoreFailure> {
        let mut content = self.content();
        content.last_id = content.last_id.max(Some(last));
        Ok(())
    }

    async fn add_pets(&self, pets: Vec<StoredPet>) -> Result<bool, StoreFailure> {
        if let Some(Addition::BeforeBatch(id)) = *self.addition.lock().unwrap() {
            assert!(self.add(stored_pets([id])));
        }
        let mut interruption = self.interruption.lock().unwrap();
        match interruption.take() {
            Some((0, is_written)) => {
                assert!(!is_written || self.add(pets));
                return Err(StoreFailure::OutcomeUnknown("interrupted".into()));
            }
            other => *interruption = other.map(|(batches, is_written)| (batches - 1, is_written)),
        }
        Ok(self.add(pets))
    }

    async fn add_idempotency_records(
        &self,
        records: Vec<IdempotencyRecord>,
    ) -> Result<(), StoreFailure> {
        let mut content = self.content();
        for record in records {
            content.records.entry(record.key.clone()).or_insert(record);
        }
        Ok(())
    }
}

#[async_trait]
impl StorageSnapshot for Content {
    async fn last_id(&self) -> Result<Option<PetId>, StoreFailure> {
        Ok(self.last_id)
    }

    async fn pets(
        &self,
        after: Option<PetId>,
        limit: usize,
    ) -> Result<Vec<StoredPet>, StoreFailure> {
        let pets = self
            .pets
            .range((after.map_or(Unbounded, Excluded), Unbounded));
        Ok(pets.take(limit).map(|(_, stored)| stored.clone()).collect())
    }

    async fn idempotency_records(
        &self,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<IdempotencyRecord>, StoreFailure> {
        let records = self
            .records
            .range((after.map_or(Unbounded, Excluded), Unbounded));
        Ok(records
            .take(limit)
            .map(|(_, record)| record.clone())
            .collect())
    }
}
