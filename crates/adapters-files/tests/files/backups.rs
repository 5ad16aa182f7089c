use std::{fs, path::PathBuf};

use animal_store_adapters_files::{BackupFile, BackupWriter};
use animal_store_app::{
    ApiKeyDigest, BackUp, BackupSummary, CopyApiKeys, CopyStorage, IdempotencyKey, PetDigest,
    ports::{ApiKeyRecord, BackupSink, BulkApiKeys, IdempotencyRecord, ImportSource, MockBulkApiKeys},
    test_support::{api_key, bulk_pets},
};
use tempfile::TempDir;

use super::*;

/// A moment in the year 9000.
fn later() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(221_845_392_000_123)
}

fn record(text: &str, pet_id: i64) -> IdempotencyRecord {
    let pet_id = PetId::parse(pet_id).expect("a valid id");
    let pet_digest = PetDigest::from_bytes([u8::try_from(pet_id.get()).expect("a small id"); 32]);
    let key = IdempotencyKey::new(api_key("key").id, text);
    IdempotencyRecord { key, pet_digest, pet_id, expires_at: later() }
}

fn keys() -> Vec<ApiKeyRecord> {
    let record = |id: &str, byte, expires| ApiKeyRecord {
        key: api_key(id),
        digest: ApiKeyDigest::from_bytes([byte; 32]),
        last_four: "wxyz".to_owned(),
        created: now(),
        expires,
    };
    vec![record("a", 1, None), record("b", 2, Some(later()))]
}

/// A folder with a backup of two pets, two records and two keys.
struct Backup {
    folder: TempDir,
    source: Arc<MemoryBulkStorage>,
    bytes: Vec<u8>,
}

impl Backup {
    async fn new() -> Self {
        let source = storage(&two_pets()).await;
        source.add_idempotency_records(vec![record("one", 1), record("two", 7)]).await.expect("a backup");
        let mut api_keys = MockBulkApiKeys::new();
        api_keys.expect_export().returning(|| Ok(keys()));
        let file = SharedBytes::default();
        let mut sink = BackupWriter::create(file.clone(), now()).expect("a backup");
        let use_case = BackUp::new(source.clone(), Some(Arc::new(api_keys)));
        use_case.execute(&mut sink, &mut Observer::default()).await.expect("a backup");
        Self { folder: tempfile::tempdir().expect("a folder"), source, bytes: file.bytes() }
    }

    fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join("backup.ndjson");
        fs::write(&path, bytes).expect("a backup");
        path
    }

    fn open(&self) -> Arc<BackupFile> {
        Arc::new(BackupFile::open(&self.write(&self.bytes)).expect("a backup"))
    }
}

#[tokio::test]
async fn a_restored_backup_has_the_pets_the_records_and_the_keys() {
    let backup = Backup::new().await;
    let file = backup.open();
    let expected = BackupSummary { pets: 2, idempotency_records: 2, api_keys: 2, stopped: false };
    assert_eq!(file.summary(), expected);

    let target = storage(&[]).await;
    for added in [2, 0] {
        let summary = CopyStorage::new(file.clone(), target.clone()).execute(&mut Observer::default()).await.unwrap();
        assert_eq!((summary.pets, summary.added, summary.idempotency_records), (2, added, 2));
    }
    assert_eq!(pets(&target).await, two_pets());
    assert_eq!(records(&target).await.len(), 2);
    assert_eq!(records(&target).await, records(&backup.source).await);

    let mut store = MockBulkApiKeys::new();
    store.expect_export().once().returning(|| Ok(keys()));
    store.expect_import().once().returning(|imported| {
        assert_eq!(imported, keys());
        Ok(imported.len())
    });
    assert_eq!(CopyApiKeys::new(file, Arc::new(store)).execute().await.unwrap(), 2);
}

async fn records(storage: &MemoryBulkStorage) -> Vec<IdempotencyRecord> {
    storage.snapshot().await.expect("snapshot").idempotency_records(None, usize::MAX).await.expect("records")
}

#[tokio::test]
async fn a_backup_that_is_cut_anywhere_is_refused() {
    let backup = Backup::new().await;
    for length in 0..backup.bytes.len() {
        let error = BackupFile::open(&backup.write(&backup.bytes[..length])).unwrap_err();
        assert!(matches!(error, PetFileError::Incomplete(_) | PetFileError::Format(_)), "{length} {error}");
    }
}

#[tokio::test]
async fn a_backup_with_a_changed_byte_is_refused() {
    let backup = Backup::new().await;
    for position in (0..backup.bytes.len()).step_by(7) {
        let mut changed = backup.bytes.clone();
        changed[position] ^= 1;
        assert!(BackupFile::open(&backup.write(&changed)).is_err(), "{position}");
    }
}

/// Its counts and its digest are right.
#[tokio::test]
async fn a_backup_with_lines_in_another_order_is_refused() {
    let [rex, cat] = &two_pets()[..] else { panic!("two pets") };
    let backup = Backup::new().await;
    let open = |write: &dyn Fn(&mut dyn BackupSink) -> io::Result<()>| {
        let file = SharedBytes::default();
        let mut sink = BackupWriter::create(file.clone(), now()).unwrap();
        write(&mut sink).and_then(|()| sink.finish()).unwrap();
        BackupFile::open(&backup.write(&file.bytes()))
    };
    assert_eq!(open(&|sink| sink.write_pets(&[rex.clone(), cat.clone()])).unwrap().summary().pets, 2);
    assert!(open(&|sink| sink.write_pets(&[cat.clone(), rex.clone()])).is_err());
    assert!(open(&|sink| sink.write_pets(&[rex.clone(), rex.clone()])).is_err());
    assert!(
        open(&|sink| sink.write_api_keys(&keys()).and_then(|()| sink.write_pets(std::slice::from_ref(rex)))).is_err()
    );
    let twice = [record("one", 1), record("one", 1)];
    assert!(open(&|sink| sink.write_idempotency_records(&twice)).is_err());
    let text = String::from_utf8(backup.bytes.clone()).unwrap();
    assert!(BackupFile::open(&backup.write(format!("{text}{{}}\n").as_bytes())).is_err());
}

#[tokio::test]
async fn a_file_that_is_no_backup_is_refused() {
    let backup = Backup::new().await;
    let (export, _) = export(&two_pets(), FileFormat::Ndjson).await;
    for (bytes, expected) in [
        (export, "the file is an export of pets, not a backup: use pets import"),
        (b"x\n".to_vec(), "the file is not a backup of the animal store"),
        (Vec::new(), "the file is not a backup of the animal store"),
    ] {
        assert_eq!(BackupFile::open(&backup.write(&bytes)).unwrap_err().to_string(), expected);
    }
    let newer = String::from_utf8(backup.bytes.clone()).unwrap().replacen(r#""version":1"#, r#""version":2"#, 1);
    let error = BackupFile::open(&backup.write(newer.as_bytes())).unwrap_err();
    assert!(matches!(error, PetFileError::NewerVersion(2)), "{error}");
    let missing = BackupFile::open(&backup.folder.path().join("missing")).unwrap_err();
    assert!(matches!(missing, PetFileError::Unreadable(_)), "{missing}");
}

#[tokio::test]
async fn pages_of_a_backup_may_be_read_in_any_order() {
    let source = Arc::new(MemoryBulkStorage::default());
    source.add_pets(bulk_pets([1, 2, 3, 4, 5])).await.unwrap();
    source.add_idempotency_records((1..=5).map(|id| record(&id.to_string(), id)).collect()).await.unwrap();
    let expired = IdempotencyRecord { expires_at: SystemTime::UNIX_EPOCH, ..record("old", 9) };
    source.add_idempotency_records(vec![expired]).await.unwrap();

    let bytes = SharedBytes::default();
    let mut sink = BackupWriter::create(bytes.clone(), now()).unwrap();
    BackUp::new(source.clone(), None).execute(&mut sink, &mut Observer::default()).await.unwrap();
    let backup = Backup { folder: tempfile::tempdir().unwrap(), source: source.clone(), bytes: bytes.bytes() };
    let file = backup.open();
    let (mut actual, mut expected) = (file.snapshot().await.unwrap(), source.snapshot().await.unwrap());
    let all_records = records(&source).await;
    let pages = [(None, 2), (Some(2), 2), (Some(4), 2), (Some(1), 1), (None, 10), (Some(5), 1), (Some(3), 9)];
    for with_pets in [true, false] {
        for (after, limit) in pages {
            let after = after.map(|id| PetId::parse(id).unwrap());
            if with_pets {
                assert_eq!(actual.pets(after, limit).await.unwrap(), expected.pets(after, limit).await.unwrap());
            }
            let key = after.map(|id| all_records[usize::try_from(id.get()).unwrap() - 1].key.clone());
            let page = actual.idempotency_records(key.clone(), limit).await.unwrap();
            assert_eq!(page, expected.idempotency_records(key, limit).await.unwrap());
        }
    }
}

#[tokio::test]
async fn a_backup_cannot_be_changed() {
    let file = Backup::new().await.open();
    assert!(file.add_pets(bulk_pets([9])).await.is_err());
    assert!(file.add_idempotency_records(Vec::new()).await.is_err());
    assert!(file.import_progress(ImportSource([0; 32])).await.is_err());
    assert!(file.finish_import(ImportSource([0; 32])).await.is_err());
    assert!(file.import(Vec::new()).await.is_err());
}
