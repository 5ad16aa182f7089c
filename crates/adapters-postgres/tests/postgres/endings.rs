//! When the writer ends.

use futures_util::{FutureExt, future::join_all};
use tokio::time::timeout;

use crate::{
    batches::Bench,
    calls::{Answered, PATIENCE, of_add},
    store::{Store, both_ways, settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writer_ends_with_the_last_who_can_add_and_not_before_what_was_sent_is_done() {
    for settings in both_ways(&settings()) {
        let bench = Bench::with(settings).await;
        let first = bench.block().await;
        let waiting = bench.begin("waiting");
        let Bench { store: Store { repository, storage, mut writer_end }, other, database: _database } = bench;
        let second_repository = storage.repository();
        let mut end = Box::pin(writer_end.wait());
        drop((repository, storage));
        assert!((&mut end).now_or_never().is_none());
        drop(second_repository);
        // Those who add hold repositories of their own, and what is sent is done without anybody.
        drop(waiting);
        drop(first);
        assert!((&mut end).now_or_never().is_none());
        other.unlock().await;
        timeout(PATIENCE, end).await.expect("it ends");
        assert_eq!(other.named("first").await, 1);
        assert_eq!(other.named("waiting").await, 0);
        other.wait_for_backends(0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writer_does_not_end_before_everybody_is_answered() {
    let bench = Bench::new().await;
    let first = bench.block().await;
    let waiting: Vec<_> = (0..10).map(|number| bench.begin(number.to_string())).collect();
    let Bench { store: Store { repository, storage, mut writer_end }, other, database: _database } = bench;
    drop((repository, storage));
    let mut end = Box::pin(writer_end.wait());
    assert!((&mut end).now_or_never().is_none());
    other.unlock().await;
    assert_eq!(of_add(&first.await), Answered);
    join_all(waiting).await.iter().for_each(|added| assert_eq!(of_add(added), Answered));
    timeout(PATIENCE, end).await.expect("it ends");
}
