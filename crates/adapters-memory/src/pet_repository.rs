use std::{
    sync::{PoisonError, RwLock, RwLockReadGuard},
    time::{Duration, Instant},
};

use animal_store_app::ports::{AddPet, AddPetError, AddedPet, PetRepository, StoreResult};
use animal_store_domain::{NewPet, Pet, PetId, PetStatus};
use async_trait::async_trait;

use crate::idempotency_keys::IdempotencyKeys;

/// Pets in memory, in ascending order of id.
///
/// Readers share a lock and do not block each other. An `add` holds it exclusively while it appends. With `n` pets:
///
/// | operation | order of growth |
/// |---|---|
/// | `find` | O(1) |
/// | `list` of `k` pets | O(k) |
/// | `list` of `k` pets by status | O(log n + k), for every status |
/// | `add` | O(1) amortised; O(n) if the vector is full and has to grow |
#[derive(Debug)]
pub struct MemoryPetRepository(RwLock<Pets>);

/// Ids are sequential and pets are never removed: the pet with id `i` is at index `i - 1`.
#[derive(Debug)]
struct Pets {
    all: Vec<Pet>,
    /// The ids of the pets of each status, in ascending order.
    by_status: [Vec<PetId>; PetStatus::ALL.len()],
    idempotency_keys: IdempotencyKeys,
}

impl MemoryPetRepository {
    /// Creates an empty repository with this retention of idempotency keys.
    pub fn new(idempotency_retention: Duration) -> Self {
        let idempotency_keys = IdempotencyKeys::new(idempotency_retention);
        Self(RwLock::new(Pets {
            all: Vec::new(),
            by_status: Default::default(),
            idempotency_keys,
        }))
    }

    fn read(&self) -> RwLockReadGuard<'_, Pets> {
        // A poisoned lock hides no partial change: nothing in `Pets::add` panics between its pushes.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pets {
    fn find(&self, id: PetId) -> Option<&Pet> {
        self.all.get(usize::try_from(id.get()).ok()? - 1)
    }

    fn list(&self, after: Option<PetId>, limit: usize) -> Vec<Pet> {
        let from = after.map_or(0, |id| usize::try_from(id.get()).unwrap_or(usize::MAX));
        self.all.iter().skip(from).take(limit).cloned().collect()
    }

    fn list_by_status(&self, status: PetStatus, after: Option<PetId>, limit: usize) -> Vec<Pet> {
        let ids = &self.by_status[status as usize];
        let from = after.map_or(0, |after| ids.partition_point(|&id| id <= after));
        ids[from..]
            .iter()
            .take(limit)
            .filter_map(|&id| self.find(id))
            .cloned()
            .collect()
    }

    fn add(&mut self, request: AddPet) -> Result<AddedPet, AddPetError> {
        let Some(key) = request.idempotency_key else {
            return Ok(AddedPet {
                pet: self.append(request.pet),
                replayed: false,
            });
        };
        let now = Instant::now();
        let earlier = self.idempotency_keys.find(&key, now);
        if let Some(pet) = earlier.and_then(|id| self.find(id)) {
            if *pet.new_pet() != request.pet {
                return Err(AddPetError::IdempotencyMismatch);
            }
            return Ok(AddedPet {
                pet: pet.clone(),
                replayed: true,
            });
        }
        let pet = self.append(request.pet);
        self.idempotency_keys.insert(key, pet.id(), now);
        Ok(AddedPet {
            pet,
            replayed: false,
        })
    }

    fn append(&mut self, pet: NewPet) -> Pet {
        let number = i64::try_from(self.all.len() + 1).expect("a vector has fewer elements");
        let id = PetId::parse(number).expect("it is positive");
        let pet = Pet::new(id, pet);
        if let Some(status) = pet.new_pet().status() {
            self.by_status[status as usize].push(pet.id());
        }
        self.all.push(pet.clone());
        pet
    }
}

#[async_trait]
impl PetRepository for MemoryPetRepository {
    async fn list(
        &self,
        status: Option<PetStatus>,
        after: Option<PetId>,
        limit: usize,
    ) -> StoreResult<Vec<Pet>> {
        let pets = self.read();
        Ok(match status {
            Some(status) => pets.list_by_status(status, after, limit),
            None => pets.list(after, limit),
        })
    }

    async fn find(&self, id: PetId) -> StoreResult<Option<Pet>> {
        Ok(self.read().find(id).cloned())
    }

    async fn add(&self, request: AddPet) -> Result<AddedPet, AddPetError> {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .add(request)
    }
}
