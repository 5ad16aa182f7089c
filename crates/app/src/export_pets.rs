use std::sync::Arc;

use crate::{
    PetsHasher, TransferError, TransferObserver, TransferPass, TransferSummary,
    ports::{BulkStorage, PetSink},
    transfer::PAGE_SIZE,
};

/// Writes all pets of a storage, as they are at one moment, to a file.
pub struct ExportPets {
    storage: Arc<dyn BulkStorage>,
}

impl ExportPets {
    /// Creates the use case over a storage.
    pub fn new(storage: Arc<dyn BulkStorage>) -> Self {
        Self { storage }
    }

    /// Writes the pets. If the observer stops the export, the file is not finished.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub async fn execute(
        &self,
        sink: &mut dyn PetSink,
        observer: &mut dyn TransferObserver,
    ) -> Result<TransferSummary, TransferError> {
        let mut snapshot = self.storage.snapshot().await.map_err(TransferError::Source)?;
        observer.started(TransferPass::Transfer, None);
        let mut hasher = PetsHasher::default();
        let mut after = None;
        loop {
            let pets = snapshot.pets(after, PAGE_SIZE).await.map_err(TransferError::Source)?;
            for pet in &pets {
                hasher.add(pet);
            }
            sink.write(&pets).map_err(TransferError::File)?;
            let complete = pets.len() < PAGE_SIZE;
            let stopped = observer.advanced(hasher.pets()).is_break() && !complete;
            if complete {
                sink.finish(hasher.pets(), hasher.digest()).map_err(TransferError::File)?;
            }
            if complete || stopped {
                return Ok(TransferSummary { pets: hasher.pets(), digest: hasher.digest(), stopped });
            }
            after = pets.last().map(|last| last.pet.id());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        PetsDigest,
        ports::{BulkStorageError, MockBulkStorage, MockPetSink, StoredPet},
        test_support::{MemoryBulkStorage, bulk_pets, stored_pet},
        transfer::test_observer::TestObserver,
    };

    #[derive(Default)]
    struct TestSink {
        pets: Vec<StoredPet>,
        end: Option<(u64, PetsDigest)>,
    }

    impl PetSink for TestSink {
        fn write(&mut self, pets: &[StoredPet]) -> std::io::Result<()> {
            assert_eq!(self.end, None);
            self.pets.extend_from_slice(pets);
            Ok(())
        }

        fn finish(&mut self, pets: u64, digest: PetsDigest) -> std::io::Result<()> {
            assert_eq!(self.end.replace((pets, digest)), None);
            Ok(())
        }
    }

    async fn storage(pets: i64) -> Arc<MemoryBulkStorage> {
        let storage = MemoryBulkStorage::default();
        storage.add_pets(bulk_pets(1..=pets)).await.unwrap();
        Arc::new(storage)
    }

    #[tokio::test]
    async fn an_export_has_every_pet_in_order_and_its_end() {
        let size = (PAGE_SIZE as u64).cast_signed();
        for pets in [0, 1, size, size + 1, 2 * size] {
            let mut sink = TestSink::default();
            let use_case = ExportPets::new(storage(pets).await);
            let summary = use_case.execute(&mut sink, &mut TestObserver::default()).await.unwrap();
            assert_eq!(sink.pets, (1..=pets).map(stored_pet).collect::<Vec<_>>());
            let mut hasher = PetsHasher::default();
            for pet in &sink.pets {
                hasher.add(pet);
            }
            assert_eq!(sink.end, Some((pets.unsigned_abs(), hasher.digest())));
            let expected = TransferSummary { pets: pets.unsigned_abs(), digest: hasher.digest(), stopped: false };
            assert_eq!(summary, expected);
        }
    }

    #[tokio::test]
    async fn an_export_that_the_observer_stops_has_no_end() {
        let mut sink = TestSink::default();
        let use_case = ExportPets::new(storage(2 * (PAGE_SIZE as u64).cast_signed() + 1).await);
        let mut observer = TestObserver::stopping(TransferPass::Transfer, 1);
        let summary = use_case.execute(&mut sink, &mut observer).await.unwrap();
        assert!(summary.stopped && summary.pets == PAGE_SIZE as u64, "{summary:?}");
        assert_eq!(sink.end, None);
    }

    #[tokio::test]
    async fn an_error_of_the_storage_or_the_file_ends_the_export() {
        let mut broken = MockBulkStorage::new();
        broken.expect_snapshot().returning(|| Err(BulkStorageError::Unavailable("gone".into())));
        let use_case = ExportPets::new(Arc::new(broken));
        let error = use_case.execute(&mut TestSink::default(), &mut TestObserver::default()).await.unwrap_err();
        assert!(matches!(error, TransferError::Source(BulkStorageError::Unavailable(_))), "{error}");

        let mut full = MockPetSink::new();
        full.expect_write().returning(|_| Err(std::io::ErrorKind::StorageFull.into()));
        let use_case = ExportPets::new(storage(1).await);
        let error = use_case.execute(&mut full, &mut TestObserver::default()).await.unwrap_err();
        let TransferError::File(error) = error else { panic!("{error}") };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    }
}
