//! The progress of imports.

use super::{BulkAccess, batch, bulk_pet, rex};
use crate::{
    ports::{AddedBulkPet, BulkPet, BulkStorageError, ImportProgress, ImportSource, ImportStep, PetBatch},
    test_support::pet_named,
};

const SOURCE: ImportSource = ImportSource([7; 32]);
const OTHER_SOURCE: ImportSource = ImportSource([8; 32]);

fn progress(lines: u64) -> ImportProgress {
    let digest = [u8::try_from(lines % 251).expect("less than 251"); 32];
    ImportProgress { lines, digest, finished: false }
}

impl BulkAccess {
    async fn step(
        &self,
        pets: impl IntoIterator<Item = BulkPet>,
        from: Option<u64>,
        to: u64,
    ) -> Result<Vec<AddedBulkPet>, BulkStorageError> {
        let step = ImportStep { source: SOURCE, from: from.map(progress), to: progress(to) };
        self.bulk.add_pets(PetBatch { step: Some(step), refuse_taken_ids: true, ..batch(pets) }).await
    }

    async fn progress(&self, source: ImportSource) -> Option<ImportProgress> {
        self.bulk.import_progress(source).await.expect("import_progress")
    }
}

/// Each source has its own progress.
pub async fn a_batch_records_the_progress_of_its_import(access: BulkAccess) {
    assert_eq!(access.progress(SOURCE).await, None);
    access.step([rex(None)], None, 5_000).await.expect("the first step");
    assert_eq!(access.progress(SOURCE).await, Some(progress(5_000)));
    access.step([rex(None)], Some(5_000), 1 << 40).await.expect("the second step");
    assert_eq!(access.progress(SOURCE).await, Some(progress(1 << 40)));
    assert_eq!(access.progress(OTHER_SOURCE).await, None);
    assert_eq!(access.all().await.len(), 2);
}

/// Every line of the batch was refused.
pub async fn a_batch_without_pets_records_its_progress(access: BulkAccess) {
    assert_eq!(access.step([], None, 3).await.expect("the step"), []);
    assert_eq!(access.progress(SOURCE).await, Some(progress(3)));
}

/// Another process imports the same file, so nothing is added.
pub async fn another_progress_than_the_recorded_one_refuses_the_batch(access: BulkAccess) {
    assert!(matches!(access.step([rex(None)], Some(1), 2).await, Err(BulkStorageError::ImportConflict)));
    access.step([], None, 5).await.expect("the first step");
    for from in [None, Some(4), Some(6)] {
        let refused = access.step([rex(1), rex(None)], from, 10).await;
        assert!(matches!(refused, Err(BulkStorageError::ImportConflict)), "{refused:?}");
    }
    let other_digest = ImportProgress { digest: [99; 32], ..progress(5) };
    let step = ImportStep { source: SOURCE, from: Some(other_digest), to: progress(10) };
    let refused = access.bulk.add_pets(PetBatch { step: Some(step), ..batch([rex(None)]) }).await;
    assert!(matches!(refused, Err(BulkStorageError::ImportConflict)), "{refused:?}");

    assert_eq!(access.progress(SOURCE).await, Some(progress(5)));
    assert_eq!(access.all().await, []);
}

/// The progress stays as it was.
pub async fn a_refused_batch_records_no_progress(access: BulkAccess) {
    access.step([rex(1)], None, 1).await.expect("the first step");
    let refused = access.step([rex(2), bulk_pet(1, pet_named("Other"))], Some(1), 3).await;
    assert!(matches!(refused, Err(BulkStorageError::IdTaken(_))), "{refused:?}");
    assert_eq!(access.progress(SOURCE).await, Some(progress(1)));
    assert_eq!(access.ids().await, [1]);
}

/// The file can then be imported again.
pub async fn a_finished_import_keeps_its_progress(access: BulkAccess) {
    let finished = |lines| ImportProgress { finished: true, ..progress(lines) };
    access.bulk.finish_import(SOURCE).await.expect("an unknown source is no error");
    assert_eq!(access.progress(SOURCE).await, None);
    access.step([rex(None)], None, 1).await.expect("the first step");
    access.bulk.finish_import(OTHER_SOURCE).await.expect("finish_import");
    assert_eq!(access.progress(SOURCE).await, Some(progress(1)));
    for _ in 0..2 {
        access.bulk.finish_import(SOURCE).await.expect("finish_import");
        assert_eq!(access.progress(SOURCE).await, Some(finished(1)));
    }
    for from in [None, Some(1)] {
        let refused = access.step([rex(None)], from, 2).await;
        assert!(matches!(refused, Err(BulkStorageError::ImportConflict)), "{refused:?}");
    }
    let again = ImportStep { source: SOURCE, from: Some(finished(1)), to: progress(1) };
    access.bulk.add_pets(PetBatch { step: Some(again), ..batch([rex(None)]) }).await.expect("the first step again");
    assert_eq!(access.progress(SOURCE).await, Some(progress(1)));
    assert_eq!(access.all().await.len(), 2);
}
