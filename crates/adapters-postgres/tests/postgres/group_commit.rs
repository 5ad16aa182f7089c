//! Adds that share a commit, and the queue in front of it.

use animal_store_adapters_postgres::PostgresSettings;
use futures_util::{FutureExt, future::join_all};

use crate::{
    fixture::Fixture,
    outcomes::{Overloaded, Success, add_outcome},
    store::{in_both_modes, settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_for_a_commit_share_the_next_one() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings).await;
        let names: Vec<_> = (0..500).map(|number| number.to_string()).collect();
        let added = fixture.add_together(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let added = added.into_iter().map(|added| added.expect("added"));
        let added: Vec<_> = added.map(|pet| format!("{} {}", pet.id().get(), pet.new_pet().name().as_str())).collect();
        let stored = "SELECT id || ' ' || name FROM pets WHERE name NOT IN ('Rex', 'first') ORDER BY id";
        assert_eq!(fixture.observer.column(stored).await, added, "each has its own id");
        assert_eq!(fixture.names().await, names, "ids ascend in the order of the requests");
        let commits =
            fixture.observer.column("SELECT DISTINCT xmin FROM pets WHERE name NOT IN ('Rex', 'first')").await;
        assert_eq!(commits.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_has_at_most_a_thousand_pets() {
    let fixture = Fixture::with(PostgresSettings { max_waiting_creates: 3000, ..settings() }).await;
    let first = fixture.block().await;
    let batch: Vec<_> = (0..2500).map(|number| fixture.begin(number.to_string())).collect();
    fixture.observer.unlock().await;
    first.await.expect("added");
    join_all(batch).await.iter().for_each(|added| assert_eq!(add_outcome(added), Success));
    let commits = "SELECT count(*) FROM pets WHERE name NOT IN ('Rex', 'first') GROUP BY xmin::text ORDER BY min(id)";
    assert_eq!(fixture.observer.column(commits).await, ["1000", "1000", "500"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_refuses_requests() {
    let fixture = Fixture::with(PostgresSettings { max_waiting_creates: 2, ..settings() }).await;
    let first = fixture.block().await;
    let waiting = [fixture.begin("one"), fixture.begin("two")];
    let refused = fixture.begin("refused").now_or_never().expect("at once");
    assert_eq!(add_outcome(&refused), Overloaded);
    drop(waiting);
    let waiting = [fixture.begin("three"), fixture.begin("four")];
    fixture.observer.unlock().await;
    first.await.expect("added");
    join_all(waiting).await.iter().for_each(|added| assert_eq!(add_outcome(added), Success));
    assert_eq!(add_outcome(&fixture.begin("five").await), Success);
    assert_eq!(fixture.names().await, ["three", "four", "five"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_request_is_stored_only_if_it_is_in_flight() {
    let fixture = Fixture::new().await;
    let sent = fixture.block().await;
    let mut waiting: Vec<_> = (0..9).map(|number| fixture.begin(number.to_string())).collect();
    // At the front, in the middle and at the end.
    for index in [8, 4, 0] {
        drop(waiting.remove(index));
    }
    drop(sent);
    fixture.observer.unlock().await;
    join_all(waiting).await.iter().for_each(|added| assert_eq!(add_outcome(added), Success));
    assert_eq!(fixture.names().await, ["1", "2", "3", "5", "6", "7"]);
    assert_eq!(fixture.observer.named("first").await, 1);
}
