use std::{
    ops::ControlFlow,
    task::{Context, Poll, Waker},
};

use super::*;
use crate::{
    ports::{MockBulkStorage, MockStorageSnapshot},
    test_support::{pet_named, stored_pet},
};

#[tokio::test]
async fn a_target_with_a_pet_that_the_source_does_not_have_is_not_changed() {
    for other in [1, 4, 6, 10_000] {
        let mut stores = Stores::new([2, 3, 5].into_iter().chain(100..160), [3, other]).await;
        let before = pets(&stores.target).await;
        let error = stores.copy().await.unwrap_err();
        assert!(matches!(error, TransferError::OtherPets(id) if id.get() == other), "{error}");
        assert_eq!(pets(&stores.target).await, before);
    }
}

#[tokio::test]
async fn a_target_with_another_pet_under_the_same_id_is_not_changed() {
    let other_name = BulkPet { pet: pet_named("Other"), ..bulk_pet(stored_pet(3)) };
    let other_time = BulkPet { created_at: Some(stored_pet(77).created_at), ..bulk_pet(stored_pet(3)) };
    for other in [other_name, other_time] {
        let mut stores = Stores::new([2, 3, 5], [2]).await;
        let batch = PetBatch { pets: vec![other], refuse_taken_ids: true, step: None };
        stores.target.add_pets(batch).await.unwrap();
        let before = pets(&stores.target).await;
        let error = stores.copy().await.unwrap_err();
        assert!(matches!(error, TransferError::OtherPets(id) if id.get() == 3), "{error}");
        assert_eq!(pets(&stores.target).await, before);
    }
}

/// Adds a pet to a storage when a pass begins.
struct Client {
    storage: Arc<MemoryBulkStorage>,
    pass: TransferPass,
    id: i64,
}

impl TransferObserver for Client {
    fn started(&mut self, pass: TransferPass, _: Option<u64>) {
        if pass == self.pass {
            let mut added = self.storage.add_pets(bulk_pets([self.id]));
            let outcome = added.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(outcome, Poll::Ready(Ok(_))), "a storage in memory responds at once");
        }
    }

    fn advanced(&mut self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[tokio::test]
async fn a_source_or_a_target_that_is_in_use_is_an_error_at_the_end() {
    for (is_source, pets) in [(true, (3, 2)), (false, (2, 3))] {
        let Stores { source, target, .. } = Stores::new([1, 2], []).await;
        let storage = if is_source { &source } else { &target }.clone();
        let mut client = Client { storage, pass: TransferPass::Transfer, id: 9 };
        let error = CopyStorage::new(source, target).execute(&mut client).await.unwrap_err();
        let TransferError::Differs { source_pets, target_pets } = error else { panic!("{error}") };
        assert_eq!((source_pets, target_pets), pets);
    }
}

#[tokio::test]
async fn a_pet_that_a_client_adds_to_the_target_in_the_meantime_is_not_changed() {
    let source = Stores::new([1, 2], []).await.source;
    let mut snapshot = MockStorageSnapshot::new();
    snapshot.expect_pets().returning(|_, _| Ok(Vec::new()));
    let mut mock = MockBulkStorage::new();
    mock.expect_snapshot().return_once(|| Ok(Box::new(snapshot)));
    mock.expect_add_pets().returning(|batch| {
        assert!(batch.refuse_taken_ids);
        Err(BulkStorageError::IdTaken(PetId::parse(2).unwrap()))
    });
    let error = CopyStorage::new(source, Arc::new(mock)).execute(&mut TestObserver::default()).await.unwrap_err();
    assert!(matches!(error, TransferError::OtherPets(id) if id.get() == 2), "{error}");
}

#[tokio::test]
async fn an_error_says_on_which_side_it_was() {
    let broken = || {
        let mut storage = MockBulkStorage::new();
        storage.expect_snapshot().returning(|| Err(BulkStorageError::Unavailable("gone".into())));
        Arc::new(storage)
    };
    let working = Stores::new([1], []).await;
    let error = CopyStorage::new(broken(), working.target).execute(&mut TestObserver::default()).await.unwrap_err();
    assert!(matches!(error, TransferError::Source(BulkStorageError::Unavailable(_))), "{error}");
    let error = CopyStorage::new(working.source, broken()).execute(&mut TestObserver::default()).await.unwrap_err();
    assert!(matches!(error, TransferError::Target(BulkStorageError::Unavailable(_))), "{error}");
}
