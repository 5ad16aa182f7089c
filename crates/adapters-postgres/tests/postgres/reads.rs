//! Reads that share connections: each gets its own response, even if others are dropped or held up.

use std::sync::Arc;

use animal_store_adapters_postgres::{PgPetRepository, PostgresSettings};
use animal_store_app::ports::PetRepository;
use animal_store_domain::PetId;
use futures_util::{FutureExt, future::join_all};
use tokio::task::yield_now;

use crate::{
    fixture::Fixture,
    outcomes::{Success, Timeout, Unavailable, eventually, find, read_outcome},
    store::{ProxiedStore, few_seconds, in_both_modes, settings},
};

const PETS: i64 = 100;

/// A read that is dropped if it has no response after this number of polls.
async fn find_briefly(repository: Arc<PgPetRepository>, id: i64, polls: i64) {
    let mut read = Box::pin(find(&repository, id));
    for _ in 0..polls {
        if let Some(found) = (&mut read).now_or_never() {
            assert_eq!(found.expect("a response").expect("a pet").id().get(), id);
            return;
        }
        yield_now().await;
    }
}

async fn find_and_list(repository: Arc<PgPetRepository>, id: i64) {
    let found = find(&repository, id).await.expect("a response").expect("a pet");
    assert_eq!((found.id().get(), found.new_pet().name().as_str()), (id, format!("pet {id}").as_str()));
    let after = PetId::parse(id).expect("an id");
    let listed = repository.list(None, Some(after), 3).await.expect("a response");
    let ids: Vec<_> = listed.iter().map(|pet| pet.id().get()).collect();
    assert_eq!(ids, (id + 1..=PETS).take(3).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_read_does_not_take_the_response_of_another() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(PostgresSettings { connections_per_worker: 1, ..settings }).await;
        let pets = format!("SELECT 'pet ' || id, 1 FROM generate_series(2, {PETS}) id ORDER BY id");
        fixture
            .observer
            .run(&format!("UPDATE pets SET name = 'pet 1'; INSERT INTO pets (name, category_id) {pets}"))
            .await;
        let reads = (0..600).map(|number| {
            let repository = Arc::clone(&fixture.store.repository);
            let id = 1 + number * 7 % PETS;
            // The first reads are dropped while the statement is prepared.
            if number % 3 == 0 {
                tokio::spawn(find_and_list(repository, id))
            } else {
                tokio::spawn(find_briefly(repository, id, number % 11))
            }
        });
        for read in join_all(reads.collect::<Vec<_>>()).await {
            read.expect("the right response");
        }
    })
    .await;
}

/// Diesel does not distinguish the end of a statement by the server from other failures.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_the_server_ends_in_time_costs_no_connection() {
    in_both_modes(&settings(), async |settings| {
        let fixture = Fixture::with(settings).await;
        let repository = &fixture.store.repository;
        assert_eq!(
            join_all([find(repository, 1), find(repository, 1)]).await.iter().map(read_outcome).collect::<Vec<_>>(),
            [Success; 2]
        );
        fixture.observer.wait_for_backends(5).await;
        let backends = fixture.observer.backends().await;
        fixture.observer.lock().await;
        let (found, ()) = tokio::join!(find(repository, 1), fixture.observer.cancel_waiting("relation", 1));
        assert!([Timeout, Unavailable].contains(&read_outcome(&found)), "{found:?}");
        fixture.observer.unlock().await;
        for _ in 0..10 {
            assert_eq!(read_outcome(&find(repository, 1).await), Success);
        }
        assert_eq!(fixture.observer.backends().await, backends);
    })
    .await;
}

/// The proxy holds the response with this pet, and all later responses on its connection.
async fn with_a_held_response(connections_per_worker: usize) -> (ProxiedStore, i64) {
    let settings = PostgresSettings { connections_per_worker, ..few_seconds() };
    let proxied = ProxiedStore::new(settings).await;
    let held = proxied.observer.column("INSERT INTO pets (name, category_id) VALUES ('held', 1) RETURNING id").await;
    proxied.proxy.hold("held");
    (proxied, held[0].parse().expect("an id"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_does_not_respond_to_one_read_is_replaced() {
    let (proxied, held) = with_a_held_response(1).await;
    let ProxiedStore { store, proxy, .. } = &proxied;
    let repository = &store.repository;
    let (slow, behind) = tokio::join!(find(repository, held), find(repository, 1));
    // The first timeout marks the connection as broken; the other read may find it closed.
    let outcomes = [read_outcome(&slow), read_outcome(&behind)];
    assert!(outcomes.contains(&Timeout) && !outcomes.contains(&Success), "{outcomes:?}");
    assert_eq!(proxy.held(), 1);
    eventually("it is replaced", async || read_outcome(&find(repository, 1).await) == Success).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_one_connection_does_not_respond_another_one_serves() {
    let (proxied, held) = with_a_held_response(2).await;
    let ProxiedStore { store, proxy, .. } = &proxied;
    let repository = &store.repository;
    let held = tokio::spawn({
        let repository = Arc::clone(repository);
        async move { read_outcome(&find(&repository, held).await) }
    });
    eventually("the response is held", async || proxy.held() == 1).await;
    // No list contains the pet that is held.
    for _ in 0..5 {
        assert_eq!(read_outcome(&find(repository, 1).await), Success);
        assert_eq!(read_outcome(&repository.list(None, None, 1).await), Success);
    }
    assert_eq!(held.await.expect("no panic"), Timeout);
    assert_eq!(proxy.held(), 1);
    // Only the other connection is used from now on.
    for _ in 0..10 {
        assert_eq!(read_outcome(&find(repository, 1).await), Success);
    }
}
