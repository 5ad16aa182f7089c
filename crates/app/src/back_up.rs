use std::sync::Arc;

use crate::{
    TransferError, TransferObserver, TransferPass,
    ports::{BackupSink, BulkApiKeys, BulkStorage},
    transfer::PAGE_SIZE,
};

/// Writes everything that a store contains to a file: pets, records of idempotency keys, and API keys.
pub struct BackUp {
    storage: Arc<dyn BulkStorage>,
    api_keys: Option<Arc<dyn BulkApiKeys>>,
}

/// Result of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackupSummary {
    /// Number of pets.
    pub pets: u64,
    /// Number of records of idempotency keys.
    pub idempotency_records: u64,
    /// Number of tokens of API keys.
    pub api_keys: u64,
    /// Whether the observer stopped the backup before its end.
    pub stopped: bool,
}

impl BackUp {
    /// Creates the use case over a storage, and over the store of API keys if its keys are to be backed up.
    pub fn new(storage: Arc<dyn BulkStorage>, api_keys: Option<Arc<dyn BulkApiKeys>>) -> Self {
        Self { storage, api_keys }
    }

    /// Writes the backup. If the observer stops it, the file is not finished.
    ///
    /// # Errors
    /// See [`TransferError`].
    pub async fn execute(
        &self,
        sink: &mut dyn BackupSink,
        observer: &mut dyn TransferObserver,
    ) -> Result<BackupSummary, TransferError> {
        let mut snapshot = self.storage.snapshot().await.map_err(TransferError::Source)?;
        observer.started(TransferPass::Transfer, None);
        let mut summary = BackupSummary::default();
        let mut after = None;
        loop {
            let pets = snapshot.pets(after, PAGE_SIZE).await.map_err(TransferError::Source)?;
            sink.write_pets(&pets).map_err(TransferError::File)?;
            summary.pets += pets.len() as u64;
            if observer.advanced(summary.pets).is_break() {
                return Ok(BackupSummary { stopped: true, ..summary });
            }
            if pets.len() < PAGE_SIZE {
                break;
            }
            after = pets.last().map(|last| last.pet.id());
        }
        let mut after = None;
        loop {
            let records = snapshot.idempotency_records(after, PAGE_SIZE).await.map_err(TransferError::Source)?;
            sink.write_idempotency_records(&records).map_err(TransferError::File)?;
            summary.idempotency_records += records.len() as u64;
            if records.len() < PAGE_SIZE {
                break;
            }
            if observer.advanced(summary.pets).is_break() {
                return Ok(BackupSummary { stopped: true, ..summary });
            }
            after = records.last().map(|last| last.key.clone());
        }
        if let Some(api_keys) = &self.api_keys {
            let keys = api_keys.export().await.map_err(TransferError::ApiKeys)?;
            sink.write_api_keys(&keys).map_err(TransferError::File)?;
            summary.api_keys = keys.len() as u64;
        }
        sink.finish().map_err(TransferError::File)?;
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        ops::ControlFlow,
        time::{Duration, SystemTime},
    };

    use animal_store_domain::PetId;

    use super::*;
    use crate::{
        ApiKeyId, IdempotencyKey, PetDigest,
        ports::{ApiKeyStoreError, IdempotencyRecord, MockBackupSink, MockBulkApiKeys},
        test_support::{MemoryBulkStorage, bulk_pets, new_pet},
        transfer::test_observer::TestObserver,
    };

    /// One more than a page has.
    const PETS: i64 = (PAGE_SIZE as u64).cast_signed() + 1;

    async fn storage(pets: i64) -> Arc<MemoryBulkStorage> {
        let storage = MemoryBulkStorage::default();
        storage.add_pets(bulk_pets(1..=pets)).await.unwrap();
        Arc::new(storage)
    }

    /// Returns a sink to which pets are written in this number of pages.
    fn sink(pages: usize) -> MockBackupSink {
        let mut sink = MockBackupSink::new();
        sink.expect_write_pets().times(pages).returning(|_| Ok(()));
        sink
    }

    #[tokio::test]
    async fn a_backup_has_the_pets_the_records_and_the_keys() {
        let mut sink = sink(2);
        sink.expect_write_idempotency_records().once().returning(|_| Ok(()));
        sink.expect_write_api_keys().once().returning(|_| Ok(()));
        sink.expect_finish().once().returning(|| Ok(()));
        let mut keys = MockBulkApiKeys::new();
        keys.expect_export().returning(|| Ok(Vec::new()));

        let use_case = BackUp::new(storage(PETS).await, Some(Arc::new(keys)));
        let summary = use_case.execute(&mut sink, &mut TestObserver::default()).await.unwrap();
        assert_eq!(summary, BackupSummary { pets: PETS.unsigned_abs(), ..BackupSummary::default() });
    }

    #[tokio::test]
    async fn a_backup_that_the_observer_stops_is_not_finished() {
        let use_case = BackUp::new(storage(PETS).await, None);
        let mut observer = TestObserver::stopping(TransferPass::Transfer, PAGE_SIZE as u64);
        let summary = use_case.execute(&mut sink(1), &mut observer).await.unwrap();
        assert_eq!(summary, BackupSummary { pets: PAGE_SIZE as u64, stopped: true, ..BackupSummary::default() });
    }

    /// Stops a backup at the second call: after the first page of records.
    #[derive(Default)]
    struct SecondCall(u32);

    impl TransferObserver for SecondCall {
        fn advanced(&mut self, _: u64) -> ControlFlow<()> {
            self.0 += 1;
            if self.0 == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }

    #[tokio::test]
    async fn a_backup_can_be_stopped_among_the_records() {
        let storage = storage(1).await;
        let record = |number: usize| IdempotencyRecord {
            key: IdempotencyKey::new(ApiKeyId::new("key"), &number.to_string()),
            pet_digest: PetDigest::from_pet(&new_pet()),
            pet_id: PetId::parse(1).unwrap(),
            expires_at: SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 1_000),
        };
        storage.add_idempotency_records((0..=PAGE_SIZE).map(record).collect()).await.unwrap();
        let mut sink = sink(1);
        sink.expect_write_idempotency_records().once().returning(|_| Ok(()));
        let summary = BackUp::new(storage, None).execute(&mut sink, &mut SecondCall::default()).await.unwrap();
        assert!(summary.stopped && summary.idempotency_records == PAGE_SIZE as u64, "{summary:?}");
    }

    #[tokio::test]
    async fn a_backup_without_its_keys_is_not_finished() {
        let mut sink = sink(1);
        sink.expect_write_idempotency_records().returning(|_| Ok(()));
        let mut keys = MockBulkApiKeys::new();
        keys.expect_export().returning(|| Err(ApiKeyStoreError::Unavailable("gone".into())));
        let use_case = BackUp::new(storage(1).await, Some(Arc::new(keys)));
        let error = use_case.execute(&mut sink, &mut TestObserver::default()).await.unwrap_err();
        assert!(matches!(error, TransferError::ApiKeys(_)), "{error}");
    }
}
