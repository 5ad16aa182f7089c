//! Several processes over one database, all of which are asked for the same animals at once.

use std::{collections::HashMap, sync::Arc};

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_test_servers::PgDatabase;
use futures_util::future::join_all;

use crate::{
    keyed::{Again, Keyed, New, ask},
    session::Session,
    store::{Store, both_ways, settings},
};

const PROCESSES: usize = 3;

struct Processes {
    stores: Vec<Store>,
    other: Session,
    _database: PgDatabase,
}

impl Processes {
    /// In a database with these settings.
    async fn with(settings: PostgresSettings, of_the_database: &str) -> Self {
        let database = PgDatabase::new();
        if !of_the_database.is_empty() {
            database.sql(&format!("ALTER DATABASE {} SET {of_the_database}", database.name()));
        }
        let mut stores = Vec::new();
        for _ in 0..PROCESSES {
            stores.push(Store::at(database.url(), settings.clone()).await);
            assert!(matches!(ask(&stores[0].repository, "Rex").await, New(_) | Again(_)));
        }
        let other = Session::of(&database).await;
        Self { stores, other, _database: database }
    }

    /// Each is asked for all of these, in an order of its own. Everybody is told the same, and one is told that it is
    /// new.
    async fn are_all_asked_for(&self, names: &[String]) {
        let asking = self.stores.iter().enumerate().flat_map(|(turn, store)| {
            let mut names = names.to_vec();
            let from = turn * names.len() / PROCESSES;
            names.rotate_left(from);
            if turn % 2 == 1 {
                names.reverse();
            }
            names.into_iter().map(|name| {
                let repository = Arc::clone(&store.repository);
                tokio::spawn(async move {
                    let keyed = ask(&repository, &name).await;
                    (name, keyed)
                })
            })
        });
        let mut told: HashMap<String, Vec<Keyed>> = HashMap::new();
        for answer in join_all(asking.collect::<Vec<_>>()).await {
            let (name, keyed) = answer.expect("it ends");
            told.entry(name).or_default().push(keyed);
        }
        for (name, answers) in told {
            let id = answers[0].id();
            assert!(answers.iter().all(|answer| matches!(answer, New(_) | Again(_))), "{name}: {answers:?}");
            assert!(answers.iter().all(|answer| answer.id() == id), "{name}: {answers:?}");
            assert_eq!(answers.iter().filter(|answer| **answer == New(id)).count(), 1, "{name}: {answers:?}");
            let stored = self.other.column(&format!("SELECT id FROM pets WHERE name = '{name}'")).await;
            assert_eq!(stored, [id.to_string()]);
        }
    }

    /// What the server counted, once all of them have gone.
    async fn deadlocks(self) -> String {
        drop(self.stores);
        self.other.wait_for_backends(0).await;
        self.other.column("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await.remove(0)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_of_the_same_keys_in_any_order_never_wait_for_each_other() {
    for settings in both_ways(&settings()) {
        let processes = Processes::with(settings, "").await;
        for round in 0..8 {
            let names: Vec<_> = (0..150).map(|number| format!("{round}-{number}")).collect();
            processes.are_all_asked_for(&names).await;
        }
        assert_eq!(processes.deadlocks().await, "0");
    }
}

/// Somebody may have set them for other programs of theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_isolation_the_database_has_everybody_is_answered() {
    for isolation in ["repeatable read", "serializable"] {
        for settings in both_ways(&settings()) {
            let processes = Processes::with(settings, &format!("default_transaction_isolation = '{isolation}'")).await;
            for round in 0..10 {
                let names: Vec<_> = (0..20).map(|number| format!("{round}-{number}")).collect();
                processes.are_all_asked_for(&names).await;
            }
        }
    }
}
