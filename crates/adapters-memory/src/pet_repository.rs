use std::{
    sync::{PoisonError, RwLock, RwLockReadGuard},
    time::{Duration, Instant},
};

use animal_store_app::ports::{AddPet, AddPetError, AddedPet, PetRepository, StorageError};
use animal_store_domain::{NewPet, Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::idempotency_keys::IdempotencyKeys;

/// Animals in memory, in ascending order of id.
///
/// Readers share a lock and do not block each other; an add holds it alone for as long as it takes to append. With
/// `n` animals:
///
/// | operation | order of growth |
/// |---|---|
/// | `find` | O(1) |
/// | `list` of `k` animals | O(k) |
/// | `list` of `k` animals by status | O(log n + k), whatever the share of that status |
/// | `add` | O(1) amortised: the add that finds the vector full moves it, O(n) |
#[derive(Debug)]
pub struct MemoryPetRepository {
    animals: RwLock<Animals>,
}

/// Ids are given in sequence and animals are never removed, so the animal with id `i` is at index `i - 1`.
#[derive(Debug)]
struct Animals {
    pets: Vec<Pet>,
    /// The ids of the animals of each status, in ascending order.
    by_status: [Vec<PetId>; PetStatus::ALL.len()],
    idempotency_keys: IdempotencyKeys,
}

impl MemoryPetRepository {
    /// An empty repository that keeps idempotency keys for so long.
    pub fn new(idempotency_retention: Duration) -> Self {
        let idempotency_keys = IdempotencyKeys::new(idempotency_retention);
        Self { animals: RwLock::new(Animals { pets: Vec::new(), by_status: Default::default(), idempotency_keys }) }
    }

    fn read(&self) -> RwLockReadGuard<'_, Animals> {
        // A poisoned lock hides no half-made change: nothing in `Animals::add` panics between its pushes.
        self.animals.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Animals {
    fn find(&self, id: PetId) -> Option<&Pet> {
        self.pets.get(usize::try_from(id.get()).ok()? - 1)
    }

    fn list(&self, after: Option<PetId>, at_most: usize) -> Vec<Pet> {
        let from = after.map_or(0, |id| usize::try_from(id.get()).unwrap_or(usize::MAX));
        self.pets.iter().skip(from).take(at_most).cloned().collect()
    }

    fn list_by_status(&self, status: PetStatus, after: Option<PetId>, at_most: usize) -> Vec<Pet> {
        let ids = &self.by_status[status as usize];
        let from = ids.partition_point(|&id| Some(id) <= after);
        ids[from..].iter().take(at_most).filter_map(|&id| self.find(id)).cloned().collect()
    }

    fn add(&mut self, request: AddPet) -> Result<AddedPet, AddPetError> {
        let Some(key) = request.idempotency_key else {
            return Ok(AddedPet { pet: self.append(request.pet)?, replayed: false });
        };
        let now = Instant::now();
        match self.idempotency_keys.find(&key, now).and_then(|id| self.find(id)) {
            Some(pet) if *pet.new_pet() == request.pet => Ok(AddedPet { pet: pet.clone(), replayed: true }),
            Some(_) => Err(AddPetError::IdempotencyMismatch),
            None => {
                let pet = self.append(request.pet)?;
                self.idempotency_keys.keep(key, pet.id(), now);
                Ok(AddedPet { pet, replayed: false })
            }
        }
    }

    fn append(&mut self, pet: NewPet) -> Result<Pet, StorageError> {
        let id = i64::try_from(self.pets.len() + 1)
            .ok()
            .and_then(|id| PetId::parse(id).ok())
            .ok_or(StorageError::Overloaded)?;
        let pet = Pet::new(id, pet);
        let answer = pet.clone();
        if let Some(status) = pet.status() {
            self.by_status[status as usize].push(id);
        }
        self.pets.push(pet);
        Ok(answer)
    }
}

#[async_trait]
impl PetRepository for MemoryPetRepository {
    async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        at_most: usize,
    ) -> Result<Vec<Pet>, StorageError> {
        let animals = self.read();
        Ok(match status {
            Some(status) => animals.list_by_status(status, after, at_most),
            None => animals.list(after, at_most),
        })
    }

    async fn find(&self, id: PetId) -> Result<Option<Pet>, StorageError> {
        Ok(self.read().find(id).cloned())
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.animals.write().unwrap_or_else(PoisonError::into_inner).add(request)
    }
}
