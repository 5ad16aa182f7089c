use super::*;

const RESUME: ImportOptions = ImportOptions { resume: true, ..PLAIN };
const LINES: u64 = 3 * BATCH + 5;

/// A file of [`LINES`] lines, the second of which is bad.
fn file() -> TestFile {
    TestFile::new((1..=LINES).map(|id| if id == 2 { bad_line() } else { line(id.cast_signed()) }))
}

#[tokio::test]
async fn an_import_that_is_interrupted_at_any_batch_and_resumed_adds_each_pet_once() {
    for batches in 0..4 {
        for is_written in [false, true] {
            let mut setup = Setup::new();
            setup.storage.interrupt_after(batches, is_written);
            let error = setup.import(file(), PLAIN).await.unwrap_err();
            assert!(matches!(error.reason, ImportErrorReason::OutcomeUnknown(_)), "{error}");

            let resumed = setup.import(file(), RESUME).await.unwrap();
            let expected = ((batches + usize::from(is_written)) * BATCH_SIZE).min(usize::try_from(LINES).unwrap());
            assert_eq!(resumed.resumed, expected as u64);
            assert_eq!(resumed.lines(), LINES);
            assert_eq!(setup.ids().await, (1..LINES.cast_signed()).collect::<Vec<_>>());
            assert_eq!(setup.progress().await, Some((LINES, true)));
        }
    }
}

#[tokio::test]
async fn an_import_that_the_observer_stops_can_be_resumed() {
    let mut setup = Setup::new();
    setup.observer = TestObserver::stopping(TransferPass::Transfer, 2 * BATCH);
    let stopped = setup.import(file(), PLAIN).await.unwrap();
    assert!(stopped.stopped && stopped.lines() == 2 * BATCH, "{stopped:?}");

    setup.observer = TestObserver::default();
    let resumed = setup.import(file(), RESUME).await.unwrap();
    assert_eq!((resumed.resumed, resumed.stopped), (stopped.lines(), false));
    assert_eq!(setup.pets().await.len() as u64, LINES - 1);
    let third = 3 * BATCH;
    assert_eq!(setup.observer.advanced, [third, third, LINES]);
}

#[tokio::test]
async fn an_unfinished_import_is_neither_started_again_nor_continued_with_another_file() {
    let mut setup = Setup::new();
    setup.storage.interrupt_after(1, false);
    setup.import(file(), PLAIN).await.unwrap_err();

    let error = setup.import(file(), PLAIN).await.unwrap_err();
    assert!(matches!(error.reason, ImportErrorReason::Unfinished(BATCH)), "{error}");
    let changed = || TestFile::new(file().lines.into_iter().map(|line| line.map(|pet| BulkPet { id: None, ..pet })));
    let shorter = || TestFile::new(lines_to(3));
    for other in [changed(), shorter()] {
        let error = setup.import(other, RESUME).await.unwrap_err();
        assert!(matches!(error.reason, ImportErrorReason::OtherFile(BATCH)), "{error}");
    }
    let keep_ids = ImportOptions { keep_ids: true, ..RESUME };
    let error = setup.import(file(), keep_ids).await.unwrap_err();
    assert!(matches!(error.reason, ImportErrorReason::OtherFile(BATCH)), "{error}");
    assert_eq!(setup.pets().await.len(), BATCH_SIZE - 1);
}

/// The signal may have ended the program that writes the file as well, in the middle of a line.
#[tokio::test]
async fn an_import_that_is_stopped_at_the_end_of_its_file_leaves_the_last_lines() {
    let mut setup = Setup::new();
    setup.observer = TestObserver::stopping(TransferPass::Transfer, 0);
    let stopped = setup.import(TestFile::new(lines_to(3)), PLAIN).await.unwrap();
    assert!(stopped.stopped && stopped.lines() == 0, "{stopped:?}");

    setup.observer = TestObserver::default();
    assert_eq!(setup.import(TestFile::new(lines_to(3)), RESUME).await.unwrap().added, 3);
}

#[tokio::test]
async fn without_an_unfinished_import_a_resumed_one_begins_at_the_first_line() {
    let mut setup = Setup::new();
    assert_eq!(setup.import(TestFile::new(lines_to(3)), RESUME).await.unwrap().added, 3);
}

/// The process of the first import may have ended before it reported success.
#[tokio::test]
async fn a_finished_import_that_is_resumed_adds_nothing() {
    let mut setup = Setup::new();
    setup.import(file(), PLAIN).await.unwrap();
    let before = setup.pets().await;
    for _ in 0..2 {
        let again = setup.import(file(), RESUME).await.unwrap();
        assert_eq!(again, ImportSummary { resumed: LINES, imported_before: true, ..ImportSummary::default() });
    }
    let error = setup.import(TestFile::new(lines_to(LINES.cast_signed())), RESUME).await.unwrap_err();
    assert!(matches!(error.reason, ImportErrorReason::OtherFile(LINES)), "{error}");
    assert_eq!(setup.pets().await, before);
}

#[tokio::test]
async fn lines_that_were_appended_after_a_finished_import_are_added() {
    let mut setup = Setup::new();
    setup.import(TestFile::new(lines_to(3)), PLAIN).await.unwrap();
    let resumed = setup.import(TestFile::new(lines_to(5)), RESUME).await.unwrap();
    assert_eq!(resumed, ImportSummary { resumed: 3, added: 2, ..ImportSummary::default() });
    assert_eq!(setup.progress().await, Some((5, true)));
}

#[tokio::test]
async fn without_resume_a_finished_import_is_repeated() {
    let mut setup = Setup::new();
    setup.import(file(), PLAIN).await.unwrap();
    setup.storage.interrupt_after(1, false);
    setup.import(file(), PLAIN).await.unwrap_err();
    assert_eq!(setup.progress().await, Some((BATCH, false)));

    let resumed = setup.import(file(), RESUME).await.unwrap();
    assert_eq!((resumed.resumed, resumed.lines(), resumed.imported_before), (BATCH, LINES, false));
    assert_eq!(setup.pets().await.len() as u64, 2 * (LINES - 1));
}

#[tokio::test]
async fn a_dry_run_ignores_an_unfinished_import() {
    let mut setup = Setup::new();
    setup.storage.interrupt_after(1, false);
    setup.import(file(), PLAIN).await.unwrap_err();
    let summary = setup.import(file(), ImportOptions { dry_run: true, ..PLAIN }).await.unwrap();
    assert_eq!((summary.added, summary.refused), (LINES - 1, 1));
    assert_eq!(setup.progress().await, Some((BATCH, false)));
}
