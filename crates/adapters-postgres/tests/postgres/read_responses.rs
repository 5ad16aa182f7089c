//! Every read returns exactly what it would have returned alone, in a batch of random other reads.

use animal_store_domain::{Pet, PetStatus};
use futures_util::future::{join, join_all};
use proptest::{collection::vec, option, prelude::*, sample::select, test_runner::TestRunner};

use crate::{
    read_fixture::{Get, List, Read, ReadFixture, load, pet},
    store::{both_modes, settings},
};

/// Ids that a table may contain, with gaps.
const MAX_ID: i64 = 300;

fn status() -> impl Strategy<Value = Option<PetStatus>> {
    option::of(select(&PetStatus::ALL))
}

fn table() -> impl Strategy<Value = Vec<Pet>> {
    let gap = prop_oneof![3 => Just(1), 1 => 2..20_i64];
    vec((gap, status()), 0..150).prop_map(|rows| {
        let mut id = 0;
        let pets = rows.into_iter().map(|(gap, status)| {
            id += gap;
            pet(id, &format!("pet {id}"), status)
        });
        pets.take_while(|pet| pet.id().get() <= MAX_ID).collect()
    })
}

fn read() -> impl Strategy<Value = Read> {
    let position = prop_oneof![8 => 0..MAX_ID, 1 => Just(0), 1 => Just(i64::MAX)];
    let limit = prop_oneof![1 => 0..6_usize, 1 => 0..=150_usize];
    prop_oneof![
        prop_oneof![9 => 1..MAX_ID, 1 => Just(i64::MAX)].prop_map(Get),
        (status(), position, limit).prop_map(|(status, after, limit)| List(status, after, limit)),
    ]
}

/// Reads, some of them several times.
fn reads() -> impl Strategy<Value = Vec<Read>> {
    (vec(read(), 1..60), 1..4_usize).prop_map(|(reads, step)| {
        let again: Vec<_> = reads.iter().step_by(step).copied().collect();
        [reads, again].concat()
    })
}

/// Sends the reads together and alone. Returns the number of statements that several reads shared.
async fn compare(fixture: &mut ReadFixture, pets: Vec<Pet>, reads: &[Read]) -> Result<usize, TestCaseError> {
    fixture.replace_pets(pets).await;
    fixture.observer.lock().await;
    let together = fixture.begin_all(reads);
    fixture.observer.unlock().await;
    for (read, response) in reads.iter().zip(join_all(together).await) {
        prop_assert_eq!(response.expect("a response"), fixture.expected(*read), "{:?}", read);
    }
    let statements = fixture.statements().await;
    let is_shared = |text: &str, rows| text.contains("unnest") || (text.contains("ANY") && rows > 1);
    let shared = statements.iter().filter(|statement| is_shared(&statement.text, statement.ids.len())).count();
    for read in reads.iter().take(10) {
        let alone = load(&fixture.store.repository, *read).await.expect("a response");
        prop_assert_eq!(alone, fixture.expected(*read), "{:?}", read);
    }
    Ok(shared)
}

#[test]
fn a_read_in_a_batch_returns_what_it_returns_alone() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let fixtures = runtime.block_on(async {
        let [plain, pooling] = both_modes(&settings());
        join(ReadFixture::with(plain, Vec::new()), ReadFixture::with(pooling, Vec::new())).await
    });

    let fixtures = std::cell::RefCell::new(fixtures);
    let shared = std::cell::Cell::new([0; 2]);
    let usual = ProptestConfig::default();
    let config = ProptestConfig { cases: usual.cases.div_ceil(10), failure_persistence: None, ..usual };
    let tested = TestRunner::new(config).run(&(table(), reads()), |(pets, reads)| {
        let (plain, pooling) = &mut *fixtures.borrow_mut();
        let compared =
            runtime.block_on(join(compare(plain, pets.clone(), &reads), compare(pooling, pets.clone(), &reads)));
        let [of_plain, of_pooling] = shared.get();
        shared.set([of_plain + compared.0?, of_pooling + compared.1?]);
        Ok(())
    });
    tested.unwrap_or_else(|error| panic!("{error}"));
    assert!(shared.get().iter().all(|&count| count >= 24), "statements that reads shared: {shared:?}");
    runtime.block_on(async { drop(fixtures) });
}
