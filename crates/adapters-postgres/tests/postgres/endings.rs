//! The end of the writer.

use futures_util::{FutureExt, future::join_all};
use tokio::time::timeout;

use crate::{
    fixture::Fixture,
    outcomes::{Success, TEST_TIMEOUT, add_outcome},
    store::{Store, in_both_modes, settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writer_ends_after_the_last_repository_and_the_last_statement() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings).await;
        let first = fixture.block().await;
        let waiting = fixture.begin("waiting");
        let Fixture { store: Store { repository, storage, mut writer, .. }, observer, database: _database } = fixture;
        let second_repository = storage.repository();
        drop((repository, storage));
        assert!((&mut writer).now_or_never().is_none());
        drop(second_repository);
        // A pending add holds a repository. A statement that was sent is completed without its client.
        drop(waiting);
        drop(first);
        assert!((&mut writer).now_or_never().is_none());
        observer.unlock().await;
        timeout(TEST_TIMEOUT, writer).await.expect("the writer ends").expect("no panic");
        assert_eq!(observer.named("first").await, 1);
        assert_eq!(observer.named("waiting").await, 0);
        observer.wait_for_backends(0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writer_does_not_end_before_every_request_has_its_response() {
    let fixture = Fixture::new().await;
    let first = fixture.block().await;
    let waiting: Vec<_> = (0..10).map(|number| fixture.begin(number.to_string())).collect();
    let Fixture { store: Store { repository, storage, mut writer, .. }, observer, database: _database } = fixture;
    drop((repository, storage));
    assert!((&mut writer).now_or_never().is_none());
    observer.unlock().await;
    assert_eq!(add_outcome(&first.await), Success);
    join_all(waiting).await.iter().for_each(|added| assert_eq!(add_outcome(added), Success));
    timeout(TEST_TIMEOUT, writer).await.expect("the writer ends").expect("no panic");
}
