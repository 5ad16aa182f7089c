//! Many clients of two processes that add the same pets, with retries, over connections that fail again and again.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use animal_store_adapters_postgres::PgPetRepository;
use animal_store_test_servers::FaultProxy;
use tokio::time::sleep;

use crate::{
    keyed::{Failed, Keyed, New, Replayed, add_keyed_with_retries},
    outcomes::{POLL_INTERVAL, Success, TEST_TIMEOUT, Unknown, eventually, wait_for_outcome},
    store::{ProxiedStore, Store, in_both_modes, proxy_to, settings},
};

/// Clients of each process.
const CLIENTS: usize = 8;

const PETS: usize = 60;

/// Number of successful adds between two failures.
const INTERVAL: usize = 120;

type Results = Vec<(String, Keyed)>;

/// Adds every pet, with retries.
async fn add_all(repository: Arc<PgPetRepository>, client: usize, stored: Arc<AtomicUsize>) -> Results {
    let mut results = Results::new();
    for number in 0..PETS {
        // Some clients add the same pet at the same time, and others do not.
        let name = ((number * (2 * (client % 3) + 1)) % PETS).to_string();
        let keyed = add_keyed_with_retries(&repository, &name).await;
        results.extend(keyed.into_iter().map(|keyed| (name.clone(), keyed)));
        stored.fetch_add(1, Ordering::Relaxed);
    }
    results
}

/// Makes connections fail in different ways until every pet is stored. `done` is in the response to each commit.
async fn fail_repeatedly(
    proxied: &mut ProxiedStore,
    other_proxy: &FaultProxy,
    done: &'static str,
    stored: &AtomicUsize,
) {
    const ALL: usize = 2 * CLIENTS * PETS;
    for failure in 1..ALL.div_ceil(INTERVAL) {
        eventually("more pets", async || stored.load(Ordering::Relaxed) >= failure * INTERVAL).await;
        match failure % 4 {
            0 => drop(proxied.observer.terminate_backends().await),
            1 => {
                // The response to a batch is lost.
                proxied.proxy.hold(done);
                let lost = async || proxied.proxy.held() > 0 || stored.load(Ordering::Relaxed) == ALL;
                eventually("a response is held", lost).await;
                proxied.proxy.cut();
                proxied.proxy.heal();
            }
            2 => other_proxy.cut(),
            _ => {
                // Requests or responses are lost.
                proxied.proxy.freeze();
                sleep(POLL_INTERVAL).await;
                proxied.proxy.cut();
                proxied.proxy.heal();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_key_adds_one_pet_despite_many_failures_and_retries() {
    in_both_modes(&settings(), async |settings| {
        let done = if settings.transaction_pooling { "COMMIT\0Z" } else { "SELECT " };
        let mut proxied = ProxiedStore::new(settings.clone()).await;
        let (elsewhere_proxy, url) = proxy_to(proxied.database.url());
        let other_store = Store::at(&url, settings).await;
        let stored = Arc::new(AtomicUsize::new(0));
        let clients: Vec<_> = [&proxied.store, &other_store]
            .into_iter()
            .flat_map(|store| (0..CLIENTS).map(|client| (Arc::clone(&store.repository), client)))
            .map(|(repository, client)| tokio::spawn(add_all(repository, client, Arc::clone(&stored))))
            .collect();
        fail_repeatedly(&mut proxied, &elsewhere_proxy, done, &stored).await;
        let mut results = Results::new();
        for client in clients {
            results.extend(client.await.expect("no panic"));
        }
        wait_for_outcome(&proxied.store.repository, Success, TEST_TIMEOUT).await;
        check(&proxied, &results).await;
    })
    .await;
}

async fn check(proxied: &ProxiedStore, results: &Results) {
    let rows = proxied.observer.column("SELECT name || ' ' || id FROM pets WHERE name <> 'Rex'").await;
    assert_eq!(rows.len(), PETS, "one for each key");
    let stored: HashMap<_, _> = rows.iter().map(|row| row.split_once(' ').expect("two columns")).collect();
    let mut news = HashMap::new();
    let mut lost = 0;
    for (name, keyed) in results {
        match keyed {
            New(id) => assert_eq!(news.insert(name, id), None, "{name} was new twice"),
            Failed(Unknown) => lost += 1,
            _ => {}
        }
        if let New(id) | Replayed(id) = keyed {
            assert_eq!(stored[&**name], id.to_string(), "{name}");
        }
    }
    assert!(lost > 0, "a response was held and lost");
}
