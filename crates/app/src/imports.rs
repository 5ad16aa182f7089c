//! The use case of an import: adds pets as a client of the service does, so that it can be interrupted and repeated.

use std::{collections::HashMap, sync::Arc};

use animal_store_domain::NewPet;

use crate::{
    ApiKey, ApiKeyId, ApiKeyLabel, CreatePet, IdempotencyKey, PetDigest, Scopes, WriteAccess,
    ports::{AddPet, AddPetError, AddedPet, PetRepository, StoreFailure},
};

/// Adds the pets of an import.
///
/// Each pet has an idempotency key made of the name of the import, the digest of the pet, and the number of equal pets
/// before it. So an import that is repeated adds only the pets that are missing, as long as these keys are kept.
pub struct ImportPets {
    create: CreatePet,
    access: WriteAccess,
    name: String,
    /// Number of equal pets so far, by the first half of their digest.
    equal_pets: HashMap<[u8; 16], u32>,
}

impl ImportPets {
    /// Creates the import with this name.
    pub fn new(repository: Arc<dyn PetRepository>, name: String) -> Self {
        Self {
            create: CreatePet::new(repository),
            access: access(),
            name,
            equal_pets: HashMap::new(),
        }
    }

    /// Numbers the next pet of the import. The returned future adds it; the futures of several pets may run
    /// concurrently. After a failure that can end, `wait` is called with the failure: its future waits for the store,
    /// and returns `true` to repeat the create. A pet that an attempt with an unknown outcome may have added counts as
    /// added, not as replayed.
    ///
    /// # Errors
    /// The future returns an error that a repetition cannot change, or the last one if `wait` has returned `false`.
    pub fn execute<W>(
        &mut self,
        pet: NewPet,
        mut wait: impl FnMut(&AddPetError) -> W,
    ) -> impl Future<Output = Result<AddedPet, AddPetError>>
    where
        W: Future<Output = bool>,
    {
        let idempotency_key = Some(self.idempotency_key(&pet));
        let request = AddPet {
            pet,
            idempotency_key,
        };
        let create = self.create.clone();
        let access = self.access.clone();
        async move {
            let mut may_be_added = false;
            loop {
                let error = match create.execute(&access, request.clone()).await {
                    Ok(mut added) => {
                        added.replayed &= !may_be_added;
                        return Ok(added);
                    }
                    Err(error) => error,
                };
                if !is_temporary(&error) || !wait(&error).await {
                    return Err(error);
                }
                may_be_added |=
                    matches!(error, AddPetError::Store(StoreFailure::OutcomeUnknown(_)));
            }
        }
    }

    fn idempotency_key(&mut self, pet: &NewPet) -> IdempotencyKey {
        let digest = PetDigest::from_pet(pet);
        let (half, _) = digest
            .0
            .split_first_chunk()
            .expect("32 bytes have a half of 16");
        let number = self.equal_pets.entry(*half).or_default();
        *number += 1;
        let text = format!("{} {} {number}", self.name, hex::encode(digest.0));
        IdempotencyKey::new(self.access.key().id.clone(), &text)
    }
}

/// The access of imports, under an API key id that no other key has: others have 11 digits or a number.
fn access() -> WriteAccess {
    let key = ApiKey {
        id: ApiKeyId::parse("import").expect("a valid id"),
        label: ApiKeyLabel::parse("import").expect("a valid label"),
        scopes: Scopes::ALL,
    };
    WriteAccess::new(Arc::new(key)).expect("the key has all scopes")
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
    use std::{cell::Cell, collections::HashSet, future::ready};

    use super::*;
    use crate::{
        ports::MockPetRepository,
        test_support::{new_pet, pet, pet_named},
    };

    type Attempt = Result<AddedPet, AddPetError>;

    fn added(replayed: bool) -> Attempt {
        let pet = pet(1);
        Ok(AddedPet { pet, replayed })
    }

    fn failure(failure: StoreFailure) -> Attempt {
        Err(failure.into())
    }

    /// Imports one pet, whose attempts have these results. Waits `waits` times. Returns whether the pet was replayed.
    async fn import(attempts: Vec<Attempt>, waits: usize) -> Result<bool, AddPetError> {
        let mut repository = MockPetRepository::new();
        let mut attempts = attempts.into_iter();
        repository
            .expect_add()
            .returning(move |_| attempts.next().expect("no further attempt"));
        let left = Cell::new(waits);
        let wait = |_: &AddPetError| ready(left.replace(left.get().saturating_sub(1)) > 0);
        let imported = ImportPets::new(Arc::new(repository), "a".to_owned())
            .execute(new_pet(), wait)
            .await;
        assert_eq!(left.get(), 0, "waits that were not needed");
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
            added(false),
        ];
        assert!(!import(attempts, 5).await.unwrap());
    }

    #[tokio::test]
    async fn a_failure_that_cannot_end_or_has_lasted_too_long_ends_the_import() {
        for error in [
            failure(StoreFailure::Corrupt("entry".into())),
            Err(AddPetError::IdempotencyMismatch),
            failure(StoreFailure::Timeout),
        ] {
            import(vec![error], 0).await.unwrap_err();
        }
    }

    #[tokio::test]
    async fn a_pet_of_an_attempt_with_an_unknown_outcome_counts_as_added() {
        assert!(import(vec![added(true)], 0).await.unwrap());
        let unknown = failure(StoreFailure::OutcomeUnknown("closed".into()));
        assert!(!import(vec![unknown, added(true)], 1).await.unwrap());
        let refused = failure(StoreFailure::Overloaded);
        assert!(import(vec![refused, added(true)], 1).await.unwrap());
    }

    #[test]
    fn an_idempotency_key_tells_the_import_the_pet_and_equal_pets_apart() {
        let keys = |name: &str| {
            let repository = Arc::new(MockPetRepository::new());
            let mut import = ImportPets::new(repository, name.to_owned());
            let pets = [new_pet(), pet_named("Ida"), new_pet()];
            pets.map(|pet| import.idempotency_key(&pet))
        };
        let first = keys("a");
        assert_eq!(keys("a"), first, "a repeated import has the same keys");
        let all: HashSet<_> = first.iter().chain(&keys("b")).cloned().collect();
        assert_eq!(all.len(), 6);
        let text = format!("a {} 2", hex::encode(PetDigest::from_pet(&new_pet()).0));
        assert_eq!(
            first[2],
            IdempotencyKey::new(ApiKeyId::parse("import").unwrap(), &text)
        );
    }
}
