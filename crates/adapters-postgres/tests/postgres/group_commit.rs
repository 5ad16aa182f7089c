//! Adds that share a commit.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use animal_store_adapters_postgres::PostgresSettings;
use futures_util::{FutureExt, future::join_all};

use crate::{
    batches::Bench,
    calls::{Answered, Deadline, Overloaded, Unavailable, add, of_add},
    store::{MARGIN, both_ways, settings},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_commit_shares_the_next_one() {
    for settings in both_ways(&settings()) {
        let bench = Bench::with(settings).await;
        let names: Vec<_> = (0..500).map(|number| number.to_string()).collect();
        let added = bench.add_together(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        for (name, added) in names.iter().zip(&added) {
            assert_eq!(added.as_ref().expect("an animal").name().as_str(), name);
        }
        assert_eq!(bench.names().await, names, "ids ascend in the order in which they came");
        let commits = bench.other.column("SELECT DISTINCT xmin FROM pets WHERE name NOT IN ('Rex', 'first')").await;
        assert_eq!(commits.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_adds_no_more_than_a_thousand() {
    let bench = Bench::with(PostgresSettings { max_waiting_creates: 3000, ..settings() }).await;
    let first = bench.block().await;
    let batch: Vec<_> = (0..2500).map(|number| bench.begin(number.to_string())).collect();
    bench.other.unlock().await;
    first.await.expect("an animal");
    join_all(batch).await.iter().for_each(|added| assert_eq!(of_add(added), Answered));
    let commits = "SELECT count(*) FROM pets WHERE name NOT IN ('Rex', 'first') GROUP BY xmin::text ORDER BY min(id)";
    assert_eq!(bench.other.column(commits).await, ["1000", "1000", "500"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_is_told_the_id_of_their_own_animal() {
    for settings in both_ways(&PostgresSettings { max_waiting_creates: 10_000, ..settings() }) {
        let bench = Bench::with(settings).await;
        let adders = (0..100).map(|adder| {
            let repository = bench.store.repository.clone();
            tokio::spawn(async move {
                let names: Vec<_> = (0..50).map(|number| format!("{adder}-{number}")).collect();
                join_all(names.iter().map(|name| add(&repository, name))).await
            })
        });
        let mut expected = HashSet::new();
        for added in join_all(adders.collect::<Vec<_>>()).await.into_iter().flat_map(|adder| adder.expect("it ends")) {
            let pet = added.expect("an animal");
            expected.insert(format!("{} {}", pet.id().get(), pet.name().as_str()));
        }
        assert_eq!(expected.len(), 5000);
        let stored = bench.other.column("SELECT id || ' ' || name FROM pets WHERE name <> 'Rex'").await;
        assert_eq!(stored.len(), 5000);
        assert_eq!(expected, stored.into_iter().collect());
        let commits = bench.other.column("SELECT DISTINCT xmin FROM pets").await.len();
        assert!(commits < 1000, "{commits} commits");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_room_for_so_many_and_no_more() {
    let bench = Bench::with(PostgresSettings { max_waiting_creates: 2, ..settings() }).await;
    let first = bench.block().await;
    let waiting = [bench.begin("one"), bench.begin("two")];
    let refused = bench.begin("refused").now_or_never().expect("at once");
    assert_eq!(of_add(&refused), Overloaded);
    drop(waiting);
    let waiting = [bench.begin("three"), bench.begin("four")];
    bench.other.unlock().await;
    first.await.expect("an animal");
    join_all(waiting).await.iter().for_each(|added| assert_eq!(of_add(added), Answered));
    assert_eq!(of_add(&bench.begin("five").await), Answered);
    assert_eq!(bench.names().await, ["three", "four", "five"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_while_waiting_is_not_stored_and_who_was_sent_is() {
    let bench = Bench::new().await;
    let sent = bench.block().await;
    let mut waiting: Vec<_> = (0..9).map(|number| bench.begin(number.to_string())).collect();
    // From the front, the middle and the end.
    for index in [8, 4, 0] {
        drop(waiting.remove(index));
    }
    drop(sent);
    bench.other.unlock().await;
    join_all(waiting).await.iter().for_each(|added| assert_eq!(of_add(added), Answered));
    assert_eq!(bench.names().await, ["1", "2", "3", "5", "6", "7"]);
    assert_eq!(bench.other.named("first").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_time_passes_while_waiting_is_not_stored() {
    let timeout = Duration::from_secs(3);
    let bench = Bench::with(PostgresSettings { timeout, ..settings() }).await;
    // The batch before is tried twice, and neither attempt takes so long that it is ended.
    bench
        .trigger("IF NEW.name = 'first' THEN PERFORM pg_sleep(1.8); RAISE 'again' USING ERRCODE = '40001'; END IF")
        .await;
    let first = bench.begin("first");
    bench.other.wait_for_sleep().await;
    let start = Instant::now();
    assert_eq!(of_add(&bench.begin("waiting").await), Deadline);
    assert!(start.elapsed() < timeout + MARGIN);
    assert_eq!(of_add(&first.await), Unavailable);
    assert_eq!(of_add(&bench.begin("later").await), Answered);
    assert_eq!(bench.names().await, ["later"]);
}
