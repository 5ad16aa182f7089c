mod interruptions;

use std::{collections::VecDeque, error::Error, io};

use sha2::{Digest, Sha256};

use super::*;
use crate::{
    ports::{MockBulkStorage, PetFileError, StoredPet},
    test_support::{MemoryBulkStorage, new_pet, pet_named, stored_pet},
    transfer::{BATCH_SIZE, test_observer::TestObserver},
};

/// Lines of a batch.
const BATCH: u64 = BATCH_SIZE as u64;

/// A file in memory. Line 1 is its header.
struct TestFile {
    source: ImportSource,
    lines: VecDeque<Result<BulkPet, String>>,
    number: u64,
    digest: [u8; 32],
    end: Option<PetFileError>,
}

impl TestFile {
    fn new(lines: impl IntoIterator<Item = Result<BulkPet, String>>) -> Self {
        let lines = lines.into_iter().collect();
        Self { source: ImportSource([1; 32]), lines, number: 1, digest: [0; 32], end: None }
    }
}

impl PetSource for TestFile {
    fn id(&self) -> ImportSource {
        self.source
    }

    fn next_line(&mut self, ids: bool) -> Result<Option<PetLine>, PetFileError> {
        let Some(pet) = self.lines.pop_front() else { return self.end.take().map_or(Ok(None), Err) };
        self.number += 1;
        self.digest = Sha256::new_with_prefix(self.digest).chain_update(format!("{pet:?}")).finalize().into();
        let pet = pet.map(|pet| BulkPet { id: pet.id.filter(|_| ids), ..pet });
        Ok(Some(PetLine { number: self.number, digest: self.digest, pet }))
    }
}

/// Returns a line with [`stored_pet`].
#[expect(clippy::unnecessary_wraps, reason = "lines are valid or bad")]
fn line(id: i64) -> Result<BulkPet, String> {
    let StoredPet { pet, created_at } = stored_pet(id);
    Ok(BulkPet { id: Some(pet.id()), pet: pet.new_pet().clone(), created_at: Some(created_at) })
}

fn bad_line() -> Result<BulkPet, String> {
    Err("name is required".to_owned())
}

const PLAIN: ImportOptions = ImportOptions { keep_ids: false, strict: false, dry_run: false, resume: false };
const KEEP_IDS: ImportOptions = ImportOptions { keep_ids: true, ..PLAIN };

struct Setup {
    storage: Arc<MemoryBulkStorage>,
    observer: TestObserver,
}

impl Setup {
    fn new() -> Self {
        Self { storage: Arc::default(), observer: TestObserver::default() }
    }

    async fn import(&mut self, file: TestFile, options: ImportOptions) -> Result<ImportSummary, ImportError> {
        let use_case = ImportPets::new(self.storage.clone());
        use_case.execute(Box::new(file), options, &mut self.observer).await
    }

    async fn pets(&self) -> Vec<StoredPet> {
        self.storage.snapshot().await.unwrap().pets(None, usize::MAX).await.unwrap()
    }

    async fn ids(&self) -> Vec<i64> {
        self.pets().await.iter().map(|stored| stored.pet.id().get()).collect()
    }

    /// Returns the number of lines that are done, and whether the import is finished.
    async fn progress(&self) -> Option<(u64, bool)> {
        let progress = self.storage.import_progress(ImportSource([1; 32])).await.unwrap();
        progress.map(|progress| (progress.lines, progress.finished))
    }
}

fn lines_to(last: i64) -> impl Iterator<Item = Result<BulkPet, String>> {
    (1..=last).map(line)
}

#[tokio::test]
async fn every_valid_line_is_added_and_every_bad_line_is_reported() {
    let mut setup = Setup::new();
    let size = BATCH.cast_signed();
    let bad = [3, size, size + 1];
    let file = TestFile::new((1..=2 * size + 7).map(|id| if bad.contains(&id) { bad_line() } else { line(id) }));
    let summary = setup.import(file, KEEP_IDS).await.unwrap();

    assert_eq!(summary, ImportSummary { added: 2 * BATCH + 4, refused: 3, ..ImportSummary::default() });
    assert_eq!(setup.ids().await, (1..=2 * size + 7).filter(|id| !bad.contains(id)).collect::<Vec<_>>());
    let refused = bad.map(|id| (id.unsigned_abs() + 1, "name is required".to_owned()));
    assert_eq!(setup.observer.refused, refused);
    let (first, second) = (BATCH, 2 * BATCH);
    assert_eq!(setup.observer.advanced, [first, second, second, second + 7]);
    assert_eq!(setup.progress().await, Some((2 * BATCH + 7, true)));
}

#[tokio::test]
async fn without_ids_the_storage_assigns_them_and_creation_times_are_kept() {
    let mut setup = Setup::new();
    setup.import(TestFile::new([line(70), line(7)]), PLAIN).await.unwrap();
    let pets = setup.pets().await;
    assert_eq!(setup.ids().await, [1, 2]);
    assert_eq!([pets[0].created_at, pets[1].created_at], [stored_pet(70).created_at, stored_pet(7).created_at]);
}

#[tokio::test]
async fn with_ids_a_second_import_adds_nothing() {
    let mut setup = Setup::new();
    setup.import(TestFile::new(lines_to(10)), KEEP_IDS).await.unwrap();
    let before = setup.pets().await;
    let again = setup.import(TestFile::new(lines_to(11)), KEEP_IDS).await.unwrap();
    assert_eq!(again, ImportSummary { existing: 10, added: 1, ..ImportSummary::default() });
    assert_eq!(setup.pets().await[..10], before);
}

#[tokio::test]
async fn the_id_of_another_pet_is_refused_whether_it_is_in_the_storage_or_in_the_file() {
    let mut setup = Setup::new();
    setup.import(TestFile::new([line(2)]), KEEP_IDS).await.unwrap();
    let other = |id| line(id).map(|pet| BulkPet { pet: pet_named("Other"), ..pet });
    let file = TestFile::new([line(1), other(2), line(3), other(3), line(3), line(4)]);
    let summary = setup.import(file, KEEP_IDS).await.unwrap();
    assert_eq!(summary, ImportSummary { added: 3, existing: 1, refused: 2, ..ImportSummary::default() });
    let refused = [(3, "another pet has the id 2".to_owned()), (5, "another pet has the id 3".to_owned())];
    assert_eq!(setup.observer.refused, refused);
    assert!(setup.pets().await.iter().all(|stored| *stored.pet.new_pet() == new_pet()));
}

#[tokio::test]
async fn a_strict_import_adds_the_lines_before_the_first_refused_one() {
    let strict = ImportOptions { strict: true, ..KEEP_IDS };
    let taken = || line(1).map(|pet| BulkPet { pet: pet_named("Other"), ..pet });
    for (refused, expected) in [(bad_line as fn() -> _, "name is required"), (taken, "another pet has the id 1")] {
        let mut setup = Setup::new();
        setup.import(TestFile::new([line(1)]), KEEP_IDS).await.unwrap();
        let file = TestFile::new([line(1), line(2), line(3), refused(), line(5), bad_line()]);
        let error = setup.import(file, strict).await.unwrap_err();
        assert_eq!(error.to_string(), format!("line 5: {expected}"));
        assert_eq!(error.done, ImportSummary { added: 2, existing: 1, ..ImportSummary::default() });
        assert_eq!(setup.ids().await, [1, 2, 3]);

        let corrected = || TestFile::new(lines_to(6));
        let resumed = setup.import(corrected(), ImportOptions { resume: true, ..strict }).await.unwrap();
        assert_eq!(resumed, ImportSummary { resumed: 3, added: 3, ..ImportSummary::default() });
        assert_eq!(setup.ids().await, [1, 2, 3, 4, 5, 6]);
    }
}

#[tokio::test]
async fn a_dry_run_reads_everything_and_calls_no_storage() {
    let mut observer = TestObserver::default();
    let file = TestFile::new(lines_to(BATCH.cast_signed()).chain([bad_line()]));
    let use_case = ImportPets::new(Arc::new(MockBulkStorage::new()));
    let options = ImportOptions { dry_run: true, ..KEEP_IDS };
    let summary = use_case.execute(Box::new(file), options, &mut observer).await.unwrap();
    assert_eq!(summary, ImportSummary { added: BATCH, refused: 1, ..ImportSummary::default() });
    assert_eq!(observer.refused.len(), 1);
}

#[tokio::test]
async fn an_incomplete_file_is_an_error_that_contains_what_was_imported() {
    let mut setup = Setup::new();
    let end = Some(PetFileError::Incomplete("its last line is missing".to_owned()));
    let error = setup.import(TestFile { end, ..TestFile::new(lines_to(3)) }, PLAIN).await.unwrap_err();
    assert!(matches!(error.reason, ImportErrorReason::Source(PetFileError::Incomplete(_))), "{error}");
    assert_eq!(error.done.added, 3);
    assert_eq!(setup.progress().await, Some((3, false)));
}

#[tokio::test]
async fn an_empty_file_adds_nothing() {
    let mut setup = Setup::new();
    assert_eq!(setup.import(TestFile::new([]), PLAIN).await.unwrap(), ImportSummary::default());
    assert_eq!(setup.progress().await, None);
}

#[tokio::test]
async fn an_error_of_the_storage_ends_the_import() {
    let mut storage = MockBulkStorage::new();
    storage.expect_import_progress().returning(|_| Ok(None));
    storage.expect_add_pets().once().returning(|_| Err(BulkStorageError::Unavailable(io::Error::other("gone").into())));
    let use_case = ImportPets::new(Arc::new(storage));
    let file = Box::new(TestFile::new(lines_to(3)));
    let error = use_case.execute(file, PLAIN, &mut TestObserver::default()).await.unwrap_err();
    assert!(matches!(error.reason, ImportErrorReason::Storage(BulkStorageError::Unavailable(_))), "{error}");
    assert!(error.source().is_some(), "the command prints why the storage failed");
    assert_eq!(error.done, ImportSummary::default());
}
