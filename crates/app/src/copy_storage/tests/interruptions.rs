use super::*;

const PETS: i64 = 3 * SIZE + 5;

#[tokio::test]
async fn a_copy_that_is_interrupted_at_any_batch_and_repeated_is_complete() {
    for batches in 0..4 {
        for is_written in [false, true] {
            let mut stores = Stores::new(1..=PETS, []).await;
            stores.target.interrupt_after(batches, is_written);
            let error = stores.copy().await.unwrap_err();
            assert!(matches!(error, TransferError::Target(BulkStorageError::OutcomeUnknown(_))), "{error}");

            let copied = (batches + usize::from(is_written)) * PAGE_SIZE;
            let missing = (PETS.unsigned_abs()).saturating_sub(copied as u64);
            assert_eq!(stores.copy().await.unwrap().added, missing);
            assert_eq!(pets(&stores.target).await, pets(&stores.source).await);
        }
    }
}

#[tokio::test]
async fn a_copy_that_is_repeated_adds_nothing() {
    let mut stores = Stores::new([1, 5, 7], []).await;
    let first = stores.copy().await.unwrap();
    let second = stores.copy().await.unwrap();
    assert_eq!(second, CopySummary { added: 0, ..first });
}

#[tokio::test]
async fn a_copy_fills_gaps_between_the_pets_of_the_target() {
    let size = SIZE;
    let mut stores = Stores::new(1..=3 * size, [1, 2, 4, size + 7, 3 * size]).await;
    assert_eq!(stores.copy().await.unwrap().added, 3 * size.unsigned_abs() - 5);
    assert_eq!(pets(&stores.target).await, pets(&stores.source).await);
}

#[tokio::test]
async fn a_copy_that_the_observer_stops_can_be_repeated() {
    for pass in [TransferPass::Check, TransferPass::Transfer, TransferPass::Verification] {
        let mut stores = Stores::new(1..=PETS, []).await;
        stores.observer = TestObserver::stopping(pass, 2 * PAGE_SIZE as u64);
        let stopped = stores.copy().await.unwrap();
        assert_eq!((stopped.digest, stopped.stopped), (None, true), "{pass:?}");
        let added = match pass {
            TransferPass::Check => 0,
            TransferPass::Transfer => 2 * PAGE_SIZE as u64,
            TransferPass::Verification => PETS.unsigned_abs(),
        };
        assert_eq!(stopped.added, added, "{pass:?}");

        stores.observer = TestObserver::default();
        assert!(stores.copy().await.unwrap().digest.is_some());
        assert_eq!(pets(&stores.target).await, pets(&stores.source).await);
    }
}
