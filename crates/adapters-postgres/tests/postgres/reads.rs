//! Reads that share a connection: everybody is told what they asked for, whoever goes meanwhile.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use animal_store_adapters_postgres::{PgPetRepository, PostgresSettings};
use animal_store_app::ports::PetRepository;
use animal_store_domain::PetId;
use futures_util::{FutureExt, future::join_all};
use tokio::task::yield_now;

use crate::{
    batches::Bench,
    calls::{AT_ONCE, Answered, Deadline, PATIENCE, Unavailable, a_moment, find, of_read},
    store::{Linked, both_ways, impatient, settings},
};

const ANIMALS: i64 = 100;

/// A read that goes after so many looks, if it is not answered by then.
async fn find_briefly(repository: Arc<PgPetRepository>, id: i64, looks: i64) {
    let mut read = Box::pin(find(&repository, id));
    for _ in 0..looks {
        if let Some(found) = (&mut read).now_or_never() {
            assert_eq!(found.expect("an answer").expect("an animal").id().get(), id);
            return;
        }
        yield_now().await;
    }
}

async fn find_and_list(repository: Arc<PgPetRepository>, id: i64) {
    let found = find(&repository, id).await.expect("an answer").expect("an animal");
    assert_eq!((found.id().get(), found.name().as_str()), (id, format!("animal {id}").as_str()));
    let after = PetId::parse(id).expect("an id");
    let listed = repository.list(None, Some(after), 3).await.expect("an answer");
    let ids: Vec<_> = listed.iter().map(|pet| pet.id().get()).collect();
    assert_eq!(ids, (id + 1..=ANIMALS).take(3).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_takes_nobodys_answer_along() {
    for settings in both_ways(&settings()) {
        let bench = Bench::with(PostgresSettings { connections_per_worker: 1, ..settings }).await;
        let animals = format!("SELECT 'animal ' || id, 1 FROM generate_series(2, {ANIMALS}) id ORDER BY id");
        bench
            .other
            .run(&format!("UPDATE pets SET name = 'animal 1'; INSERT INTO pets (name, category_id) {animals}"))
            .await;
        let reads = (0..2000).map(|number| {
            let repository = Arc::clone(&bench.store.repository);
            let id = 1 + number * 7 % ANIMALS;
            // The first ones go while the statement is prepared.
            if number % 3 == 0 {
                tokio::spawn(find_and_list(repository, id))
            } else {
                tokio::spawn(find_briefly(repository, id, number % 11))
            }
        });
        for read in join_all(reads.collect::<Vec<_>>()).await {
            read.expect("the right answer");
        }
    }
}

/// A pooler would keep a connection of the server for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_leaves_no_transaction_behind() {
    let bench = Bench::with(PostgresSettings { transaction_pooling: true, ..settings() }).await;
    bench.other.lock().await;
    let repository = &bench.store.repository;
    let mut read = Box::pin(find(repository, 1));
    // The first one opens the connection.
    let start = Instant::now();
    while bench.other.count("pg_locks WHERE NOT granted AND relation = 'pets'::regclass").await == 0 {
        assert!((&mut read).now_or_never().is_none());
        assert!(start.elapsed() < PATIENCE, "it does not wait for the lock");
        a_moment().await;
    }
    drop(read);
    bench.other.unlock().await;
    let start = Instant::now();
    let open =
        "pg_stat_activity WHERE application_name = 'animal-store' AND datname = current_database() AND state <> 'idle'";
    while bench.other.count(open).await > 0 {
        assert!(start.elapsed() < PATIENCE, "its transaction is open");
        a_moment().await;
    }
}

/// Diesel does not tell that from other failures.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_the_server_ended_in_time_costs_no_connection() {
    for settings in both_ways(&PostgresSettings { timeout: Duration::from_secs(2), ..settings() }) {
        let bench = Bench::with(settings).await;
        let repository = &bench.store.repository;
        assert_eq!(
            join_all([find(repository, 1), find(repository, 1)]).await.iter().map(of_read).collect::<Vec<_>>(),
            [Answered; 2]
        );
        let backends = bench.other.backends().await;
        bench.other.lock().await;
        let outcome = of_read(&find(repository, 1).await);
        assert!([Deadline, Unavailable].contains(&outcome));
        bench.other.unlock().await;
        for _ in 0..10 {
            assert_eq!(of_read(&find(repository, 1).await), Answered);
        }
        assert_eq!(bench.other.backends().await, backends);
    }
}

/// The answer with this name, and what is behind it on its connection, is held up.
async fn with_a_held_answer(connections_per_worker: usize) -> (Linked, i64) {
    let settings = PostgresSettings { connections_per_worker, ..impatient() };
    let linked = Linked::new(settings).await;
    let held = linked.other.column("INSERT INTO pets (name, category_id) VALUES ('held', 1) RETURNING id").await;
    linked.link.hold("held");
    (linked, held[0].parse().expect("an id"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_does_not_answer_one_read_is_replaced() {
    let (linked, held) = with_a_held_answer(1).await;
    let Linked { store, link, .. } = &linked;
    let repository = &store.repository;
    let (slow, behind) = tokio::join!(find(repository, held), find(repository, 1));
    // Whose time is over first gives the connection up; the other one may find it closed.
    let outcomes = [of_read(&slow), of_read(&behind)];
    assert!(outcomes.contains(&Deadline) && !outcomes.contains(&Answered), "{outcomes:?}");
    assert_eq!(link.held(), 1);
    let start = Instant::now();
    while of_read(&find(repository, 1).await) != Answered {
        assert!(start.elapsed() < AT_ONCE, "it is not replaced");
        a_moment().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_one_connection_does_not_answer_another_one_serves() {
    let (linked, held) = with_a_held_answer(2).await;
    let Linked { store, link, .. } = &linked;
    let repository = &store.repository;
    // They take turns; the first one is slow.
    let reads = join_all([held, 1, 1, 1, 1, 1].map(|id| find(repository, id))).await;
    for (turn, outcome) in reads.iter().map(of_read).enumerate() {
        assert_eq!(outcome == Answered, turn % 2 == 1, "{turn}: {outcome:?}");
    }
    assert_eq!(link.held(), 1);
    // The connection that served goes on, and nothing is asked of the other one.
    for _ in 0..10 {
        assert_eq!(of_read(&find(repository, 1).await), Answered);
    }
}
