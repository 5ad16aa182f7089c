//! SQLite and the memory adapter give the same results to every sequence of calls.

use animal_store_adapters_memory::MemoryPetRepository;
use animal_store_app::test_support::assert_same_results;
use tokio::runtime::Builder;

use crate::{
    sql,
    store::{Store, settings},
};

#[test]
fn sqlite_and_memory_give_the_same_results() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let _guard = runtime.enter();
    let store = Store::new();

    assert_same_results(&runtime, &store.repository, async || {
        sql::execute(&store.path(), "DELETE FROM pets; DELETE FROM sqlite_sequence;");
        MemoryPetRepository::new(settings().idempotency_retention)
    });
}
