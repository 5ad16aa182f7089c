//! The use case of an import: adds pets as a client of the service does, so that it can be interrupted and repeated.

use std::{collections::HashMap, sync::Arc};

use animal_store_domain::NewPet;

use crate::{
    ApiKey, ApiKeyId, ApiKeyLabel, CreatePet, IdempotencyKey, PetDigest, Scopes, WriteAccess,
    ports::{AddPet, AddPetError, AddedPet, PetRepository, StoreFailure},
};

/// Makes the requests of an import.
///
/// Each pet has an idempotency key made of the name of the import, the digest of the pet, and the number of equal pets
/// before it. So an import that is repeated adds only the pets that are missing, as long as these keys are kept.
pub struct ImportRequests {
    name: String,
    /// Number of equal pets so far, by the first half of their digest.
    equal_pets: HashMap<[u8; 16], u32>,
}

/// Adds the pets of an import. Clones are for pets that are added concurrently.
#[derive(Clone)]
pub struct ImportPets {
    create: CreatePet,
    access: WriteAccess,
}

impl ImportRequests {
    /// Begins an import with this name.
    pub fn new(name: String) -> Self {
        Self {
            name,
            equal_pets: HashMap::new(),
        }
    }

    /// Returns the request to add the next pet.
    ///
    /// # Panics
    /// Never: a digest has 32 bytes.
    pub fn next(&mut self, pet: NewPet) -> AddPet {
        let digest = PetDigest::from_pet(&pet);
        let (half, _) = digest.0.split_first_chunk().expect("32 bytes");
        let number = self.equal_pets.entry(*half).or_default();
        *number += 1;
        let text = format!("{} {} {number}", self.name, hex::encode(digest.0));
        AddPet {
            pet,
            idempotency_key: Some(IdempotencyKey::new(api_key_id(), &text)),
        }
    }
}

impl ImportPets {
    /// Creates the use case over a repository.
    ///
    /// # Panics
    /// Never: the API key of imports has all scopes.
    pub fn new(repository: Arc<dyn PetRepository>) -> Self {
        let key = ApiKey {
            id: api_key_id(),
            label: ApiKeyLabel::parse("import").expect("a valid label"),
            scopes: Scopes::ALL,
        };
        Self {
            create: CreatePet::new(repository),
            access: WriteAccess::new(Arc::new(key)).expect("all scopes"),
        }
    }

    /// Adds a pet. After a failure that can end, calls `wait`, whose future waits for the store and returns `true` to
    /// repeat the create. A pet that an attempt with an unknown outcome may have added counts as added, not as replayed.
    ///
    /// # Errors
    /// An error that a repetition cannot change, or the last one if `wait` has returned `false`.
    pub async fn execute<W: Future<Output = bool>>(
        &self,
        request: AddPet,
        mut wait: impl FnMut(&AddPetError) -> W,
    ) -> Result<AddedPet, AddPetError> {
        let mut may_be_added = false;
        loop {
            let error = match self.create.execute(&self.access, request.clone()).await {
                Ok(mut added) => {
                    added.replayed &= !may_be_added;
                    return Ok(added);
                }
                Err(error) => error,
            };
            if !is_temporary(&error) || !wait(&error).await {
                return Err(error);
            }
            may_be_added |= matches!(error, AddPetError::Store(StoreFailure::OutcomeUnknown(_)));
        }
    }
}

/// The id of the API key of imports. No other key has it: others have 11 digits or a number.
fn api_key_id() -> ApiKeyId {
    ApiKeyId::parse("import").expect("a valid id")
}

/// Whether the same create can succeed later.
fn is_temporary(error: &AddPetError) -> bool {
    !matches!(
        error,
        AddPetError::Store(StoreFailure::Corrupt(_)) | AddPetError::IdempotencyMismatch
    )
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, future::ready};

    use super::*;
    use crate::{
        ports::MockPetRepository,
        test_support::{new_pet, pet, pet_named},
    };

    type Attempt = Result<AddedPet, AddPetError>;

    fn added(replayed: bool) -> AddedPet {
        let pet = pet(1);
        AddedPet { pet, replayed }
    }

    fn failure(failure: StoreFailure) -> Attempt {
        Err(failure.into())
    }

    /// Imports one pet, whose attempts have these results, with this number of waits. After the last attempt, the wait
    /// ends the import. Returns whether the pet was replayed.
    async fn import(attempts: Vec<Attempt>, waits: usize) -> Result<bool, AddPetError> {
        let mut repository = MockPetRepository::new();
        let last = attempts.len();
        let mut attempts = attempts.into_iter();
        repository
            .expect_add()
            .returning(move |_| attempts.next().expect("no further attempt"));
        let mut waited = 0;
        let wait = |_: &AddPetError| {
            waited += 1;
            ready(waited < last)
        };
        let request = ImportRequests::new("a".to_owned()).next(new_pet());
        let imported = ImportPets::new(Arc::new(repository))
            .execute(request, wait)
            .await;
        assert_eq!(waited, waits);
        imported.map(|added| added.replayed)
    }

    #[tokio::test]
    async fn a_create_is_repeated_after_each_failure_that_can_end() {
        let attempts = vec![
            failure(StoreFailure::Unavailable("refused".into())),
            failure(StoreFailure::Overloaded),
            failure(StoreFailure::Timeout),
            failure(StoreFailure::OutcomeUnknown("closed".into())),
            Err(AddPetError::IdempotencyConflict),
            Ok(added(false)),
        ];
        assert!(!import(attempts, 5).await.unwrap());
    }

    #[tokio::test]
    async fn a_failure_that_cannot_end_or_has_lasted_too_long_ends_the_import() {
        for (error, waits) in [
            (failure(StoreFailure::Corrupt("entry".into())), 0),
            (Err(AddPetError::IdempotencyMismatch), 0),
            (failure(StoreFailure::Timeout), 1),
        ] {
            import(vec![error], waits).await.unwrap_err();
        }
    }

    #[tokio::test]
    async fn a_pet_of_an_attempt_with_an_unknown_outcome_counts_as_added() {
        assert!(import(vec![Ok(added(true))], 0).await.unwrap());
        let unknown = failure(StoreFailure::OutcomeUnknown("closed".into()));
        assert!(!import(vec![unknown, Ok(added(true))], 1).await.unwrap());
        let refused = failure(StoreFailure::Overloaded);
        assert!(import(vec![refused, Ok(added(true))], 1).await.unwrap());
    }

    #[test]
    fn an_idempotency_key_tells_the_import_the_pet_and_equal_pets_apart() {
        let keys = |name: &str| {
            let mut requests = ImportRequests::new(name.to_owned());
            let pets = [new_pet(), pet_named("Ida"), new_pet()];
            pets.map(|pet| requests.next(pet).idempotency_key.unwrap())
        };
        let first = keys("a");
        assert_eq!(keys("a"), first, "a repeated import has the same keys");
        let all: HashSet<_> = first.iter().chain(&keys("b")).cloned().collect();
        assert_eq!(all.len(), 6);
        let text = format!("a {} 2", hex::encode(PetDigest::from_pet(&new_pet()).0));
        assert_eq!(first[2], IdempotencyKey::new(api_key_id(), &text));
    }
}
