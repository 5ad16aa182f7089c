//! Many clients of two processes that ask for the same animals until they are answered, over links that fail again and
//! again.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use animal_store_adapters_postgres::PgPetRepository;
use animal_store_test_servers::FaultProxy;

use crate::{
    calls::{Answered, PATIENCE, Unknown, a_moment, comes_to},
    keyed::{Again, Failed, Keyed, New, ask},
    store::{Linked, Store, both_ways, link, settings},
};

/// Of each process.
const CLIENTS: usize = 12;

const ANIMALS: usize = 120;

/// Between two failures of a link.
const ANSWERS: usize = 250;

type Answers = Vec<(String, Keyed)>;

/// Asks for every animal until there is an answer; says everything that it was told.
async fn ask_for_all(repository: Arc<PgPetRepository>, client: usize, answered: Arc<AtomicUsize>) -> Answers {
    let mut answers = Answers::new();
    for number in 0..ANIMALS {
        // Some ask for the same at the same time, and others do not.
        let name = ((number * (2 * (client % 3) + 1)) % ANIMALS).to_string();
        let start = Instant::now();
        loop {
            let keyed = ask(&repository, &name).await;
            answers.push((name.clone(), keyed));
            if matches!(keyed, New(_) | Again(_)) {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "{name}: {keyed:?}");
            a_moment().await;
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
    answers
}

/// Lets links fail, one way after the other, until everything is answered.
async fn rage(linked: &mut Linked, elsewhere: &FaultProxy, answered: &AtomicUsize) {
    for failure in 1.. {
        let start = Instant::now();
        while answered.load(Ordering::Relaxed) < failure * ANSWERS {
            assert!(start.elapsed() < PATIENCE, "nothing is answered any more");
            if answered.load(Ordering::Relaxed) == 2 * CLIENTS * ANIMALS {
                return;
            }
            a_moment().await;
        }
        match failure % 4 {
            0 => drop(linked.other.terminate_backends().await),
            1 => linked.link.cut(),
            2 => elsewhere.cut(),
            _ => {
                // What is under way is lost on its way, there or back.
                linked.link.freeze();
                for _ in 0..failure {
                    a_moment().await;
                }
                linked.link.cut();
                linked.link.heal();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_storm_of_retries_there_is_one_animal_for_each_key() {
    for settings in both_ways(&settings()) {
        let mut linked = Linked::new(settings.clone()).await;
        let (elsewhere_link, url) = link(linked.database.url());
        let elsewhere = Store::at(&url, settings).await;
        let answered = Arc::new(AtomicUsize::new(0));
        let clients: Vec<_> = [&linked.store, &elsewhere]
            .into_iter()
            .flat_map(|store| (0..CLIENTS).map(|client| (Arc::clone(&store.repository), client)))
            .map(|(repository, client)| tokio::spawn(ask_for_all(repository, client, Arc::clone(&answered))))
            .collect();
        rage(&mut linked, &elsewhere_link, &answered).await;
        let mut answers = Answers::new();
        for client in clients {
            answers.extend(client.await.expect("it ends"));
        }
        comes_to(&linked.store.repository, Answered, PATIENCE).await;
        check(&linked, &answers).await;
    }
}

async fn check(linked: &Linked, answers: &Answers) {
    let rows = linked.other.column("SELECT name || ' ' || id FROM pets WHERE name <> 'Rex'").await;
    assert_eq!(rows.len(), ANIMALS, "one for each key");
    let stored: HashMap<_, _> = rows.iter().map(|row| row.split_once(' ').expect("two")).collect();
    let mut news = HashMap::new();
    let mut lost = 0;
    for (name, keyed) in answers {
        match keyed {
            New(id) => assert_eq!(news.insert(name, id), None, "{name} was new twice"),
            Failed(Unknown) => lost += 1,
            _ => {}
        }
        if let New(id) | Again(id) = keyed {
            assert_eq!(stored[&**name], id.to_string(), "{name}");
        }
    }
    assert!(lost > 0, "it was no storm");
}
