//! Several processes that add the same pets to one database at the same time.

use std::{collections::HashMap, sync::Arc};

use animal_store_adapters_postgres::PostgresSettings;
use animal_store_test_servers::PgDatabase;
use futures_util::future::join_all;

use crate::{
    keyed::{Keyed, New, Replayed, add_keyed},
    sql_session::SqlSession,
    store::{Store, in_both_modes, settings},
};

const PROCESSES: usize = 3;

struct Processes {
    stores: Vec<Store>,
    observer: SqlSession,
    _database: PgDatabase,
}

impl Processes {
    /// Starts the processes on a database with this isolation of transactions.
    async fn with(settings: PostgresSettings, isolation: &str) -> Self {
        let database = PgDatabase::new();
        let set = format!("ALTER DATABASE {} SET default_transaction_isolation", database.name());
        database.sql(&format!("{set} = '{isolation}'"));
        let mut stores = Vec::new();
        for _ in 0..PROCESSES {
            stores.push(Store::at(database.url(), settings.clone()).await);
            assert!(matches!(add_keyed(&stores[0].repository, "Rex").await, New(_) | Replayed(_)));
        }
        let observer = SqlSession::of(&database).await;
        Self { stores, observer, _database: database }
    }

    /// Each process adds all names, in a different order. All return the same ids, and each id is `New` exactly once.
    async fn add_all(&self, names: &[String]) {
        let adds = self.stores.iter().enumerate().flat_map(|(process, store)| {
            let mut names = names.to_vec();
            let from = process * names.len() / PROCESSES;
            names.rotate_left(from);
            if process % 2 == 1 {
                names.reverse();
            }
            names.into_iter().map(|name| {
                let repository = Arc::clone(&store.repository);
                tokio::spawn(async move {
                    let keyed = add_keyed(&repository, &name).await;
                    (name, keyed)
                })
            })
        });
        let mut by_name: HashMap<String, Vec<Keyed>> = HashMap::new();
        for result in join_all(adds.collect::<Vec<_>>()).await {
            let (name, keyed) = result.expect("no panic");
            by_name.entry(name).or_default().push(keyed);
        }
        for (name, results) in by_name {
            let id = results[0].id();
            assert!(results.iter().all(|result| matches!(result, New(_) | Replayed(_))), "{name}: {results:?}");
            assert!(results.iter().all(|result| result.id() == id), "{name}: {results:?}");
            assert_eq!(results.iter().filter(|result| **result == New(id)).count(), 1, "{name}: {results:?}");
            let stored = self.observer.column(&format!("SELECT id FROM pets WHERE name = '{name}'")).await;
            assert_eq!(stored, [id.to_string()]);
        }
    }

    /// The server's count of deadlocks, after the processes have disconnected.
    async fn deadlocks(self) -> String {
        drop(self.stores);
        self.observer.wait_for_backends(0).await;
        self.observer
            .column("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            .await
            .remove(0)
    }
}

/// The database may have a default for other programs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_of_the_same_keys_never_deadlock_in_any_order_and_with_any_default_isolation() {
    for isolation in ["read committed", "repeatable read", "serializable"] {
        in_both_modes(&settings(), async |settings| {
            let processes = Processes::with(settings, isolation).await;
            for round in 0..3 {
                let names: Vec<_> = (0..100).map(|number| format!("{round}-{number}")).collect();
                processes.add_all(&names).await;
            }
            assert_eq!(processes.deadlocks().await, "0");
        })
        .await;
    }
}
