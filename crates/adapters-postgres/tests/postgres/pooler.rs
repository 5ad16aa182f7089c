//! What is done through a pooler is done right, and leaves nothing on connections that others use.

use std::{sync::Arc, time::Duration};

use animal_store_adapters_postgres::{PgStorage, PostgresSettings};
use animal_store_app::{
    pet_repository_contract,
    ports::{AddPet, PetRepository},
    test_support::new_pet,
};
use animal_store_domain::{Pet, PetStatus};
use animal_store_test_servers::{PgBouncer, PostgresServer};
use tokio::task::JoinSet;

use crate::{
    pooled::{LEFT_BEHIND, Pooled, pooling},
    store::{Store, settings},
};

mod one_connection {
    use super::*;

    async fn repository(idempotency_retention: Duration) -> (Arc<dyn PetRepository>, Pooled) {
        let pooled = Pooled::with(1, PostgresSettings { idempotency_retention, ..pooling() }).await;
        (pooled.repository(), pooled)
    }

    pet_repository_contract!(repository);
}

mod without_a_pooler {
    use animal_store_test_servers::PgDatabase;

    use super::*;

    async fn repository(idempotency_retention: Duration) -> (Arc<dyn PetRepository>, (PgStorage, PgDatabase)) {
        let database = PgDatabase::new();
        let settings = PostgresSettings { idempotency_retention, ..pooling() };
        let store = Store::at(database.url(), settings).await;
        (store.repository, (store.storage, database))
    }

    pet_repository_contract!(repository);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_share_few_connections_and_leave_nothing_behind() {
    let pooled = Pooled::with(2, PostgresSettings { connections_per_worker: 8, ..pooling() }).await;
    let workers: Vec<_> = (0..4).map(|_| pooled.repository()).collect();
    let mut requests = JoinSet::new();
    for number in 0..200 {
        let worker = Arc::clone(&workers[number % workers.len()]);
        requests.spawn(async move {
            let added = worker.add(AddPet::new(new_pet())).await.expect("added").pet;
            assert_eq!(worker.find(added.id()).await.expect("found").as_ref(), Some(&added));
            let list = worker.list(Some(PetStatus::Available), None, 1000).await.expect("a list");
            assert!(list.is_sorted_by_key(Pet::id) && list.contains(&added));
            assert_eq!(worker.list(Some(PetStatus::Sold), None, 1000).await.expect("a list"), []);
        });
    }
    requests.join_all().await;
    assert_eq!(workers[0].list(None, None, 1000).await.expect("a list").len(), 200);
    pooled.storage.readiness().check().await.expect("it is ready");

    pooled.comes_to_rest().await;
    assert_eq!(pooled.through_the_pooler(2, LEFT_BEHIND).await, [[""; 0], [""; 0]]);
    for (setting, default) in [
        ("statement_timeout", "0"),
        ("idle_in_transaction_session_timeout", "0"),
        ("plan_cache_mode", "auto"),
        ("enable_seqscan", "on"),
        ("transaction_read_only", "off"),
        ("lock_timeout", "0"),
        ("TimeZone", &*pooled.server.sql("postgres", "SHOW TimeZone")),
    ] {
        let found = pooled.through_the_pooler(2, &format!("SHOW {setting}")).await;
        assert_eq!(found, [[default], [default]], "{setting}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_session_mode_nothing_is_different() {
    let server = PostgresServer::start();
    let bouncer = PgBouncer::start(server.port(), "session", 10);
    let store = Store::at(&bouncer.url("postgres"), settings()).await;
    let added = store.repository.add(AddPet::new(new_pet())).await.expect("added").pet;
    assert_eq!(store.repository.find(added.id()).await.expect("found").as_ref(), Some(&added));
    assert_eq!(store.repository.list(added.status(), None, 10).await.expect("a list"), [added]);
    store.storage.readiness().check().await.expect("it is ready");
}
