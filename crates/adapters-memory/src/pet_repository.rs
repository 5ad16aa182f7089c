use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use animal_store_app::ports::{AddError, AddPet, PetRepository, StorageError};
use animal_store_domain::{Pet, PetId, PetStatus};
use async_trait::async_trait;

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
#[derive(Debug, Default)]
pub struct MemoryPetRepository {
    animals: RwLock<Animals>,
}

/// Ids are given in sequence and animals are never removed, so the animal with id `i` is at index `i - 1`.
#[derive(Debug, Default)]
struct Animals {
    pets: Vec<Pet>,
    /// The ids of the animals of each status, in ascending order.
    by_status: [Vec<PetId>; PetStatus::ALL.len()],
}

impl MemoryPetRepository {
    /// An empty repository.
    pub fn new() -> Self {
        Self::default()
    }

    fn read(&self) -> RwLockReadGuard<'_, Animals> {
        // A poisoned lock hides no half-made change: nothing in `Animals::add` panics between its two pushes.
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

    fn add(&mut self, request: AddPet) -> Result<Pet, AddError> {
        let id = i64::try_from(self.pets.len() + 1)
            .ok()
            .and_then(|id| PetId::new(id).ok())
            .ok_or(StorageError::Overloaded)?;
        let pet = Pet::new(id, request.pet);
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

    async fn add(&self, request: AddPet) -> Result<Pet, AddError> {
        self.animals.write().unwrap_or_else(PoisonError::into_inner).add(request)
    }
}
