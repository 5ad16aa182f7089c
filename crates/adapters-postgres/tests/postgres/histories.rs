//! PostgreSQL and the memory adapter give the same results to every sequence of calls.

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_app::test_support::assert_same_results;
use animal_store_test_servers::PgDatabase;
use tokio::runtime::Builder;

use crate::{
    sql_session::client,
    store::{Store, settings},
};

#[test]
fn postgresql_and_memory_give_the_same_results() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let database = PgDatabase::new();
    let (store, client) =
        runtime.block_on(async { (Store::at(database.url(), settings()).await, client(database.url()).await) });

    assert_same_results(&runtime, &*store.repository, async || {
        client.batch_execute("TRUNCATE pets RESTART IDENTITY").await.expect("an empty table");
        MemoryPetRepository::new(settings().idempotency_retention)
    });
}
