//! Random sequences of calls, to which two adapters of the repository give the same results.

use animal_store_domain::{CategoryId, NewPet, PetId, PetName, PetStatus};
use proptest::{collection::vec, option, prelude::*, sample::select, test_runner::TestRunner};
use tokio::runtime::Runtime;

use crate::ports::{AddPet, PetRepository};

#[derive(Debug, Clone)]
enum Step {
    Add(NewPet),
    List(Option<PetStatus>, Option<PetId>, usize),
    Find(PetId),
}

fn status() -> impl Strategy<Value = Option<PetStatus>> {
    option::of(select(&PetStatus::ALL))
}

/// An id of a pet, or one behind the last pet.
fn id() -> impl Strategy<Value = PetId> {
    prop_oneof![9 => 1..40_i64, 1 => 1..=i64::MAX]
        .prop_map(|id| PetId::parse(id).expect("1 or more"))
}

fn step() -> impl Strategy<Value = Step> {
    let name = any::<String>().prop_filter_map("a name", |text| PetName::parse(&text).ok());
    let pet = (name, any::<i64>(), status()).prop_map(|(name, category, status)| {
        NewPet::new(name, CategoryId::new(category)).with_status(status)
    });
    prop_oneof![
        4 => pet.prop_map(Step::Add),
        4 => (status(), option::of(id()), 0..12_usize)
            .prop_map(|(status, after, limit)| Step::List(status, after, limit)),
        1 => id().prop_map(Step::Find),
    ]
}

async fn result(repository: &dyn PetRepository, step: Step) -> String {
    match step {
        Step::Add(pet) => format!("{:?}", repository.add(AddPet::new(pet)).await),
        Step::List(status, after, limit) => {
            format!("{:?}", repository.list(status, after, limit).await)
        }
        Step::Find(id) => format!("{:?}", repository.find(id).await),
    }
}

/// Asserts that a repository gives the same results as one of another adapter. `start` is called before each sequence:
/// it empties the repository, and returns an empty one of the other adapter.
///
/// # Panics
/// If a result differs.
pub fn assert_same_results<R: PetRepository>(
    runtime: &Runtime,
    repository: &dyn PetRepository,
    start: impl AsyncFn() -> R,
) {
    let usual = ProptestConfig::default();
    let config = ProptestConfig {
        cases: usual.cases.div_ceil(10),
        failure_persistence: None,
        ..usual
    };
    let tested = TestRunner::new(config).run(&vec(step(), 1..60), |steps| {
        runtime.block_on(async {
            let other = start().await;
            for step in steps {
                let expected = result(&other, step.clone()).await;
                prop_assert_eq!(
                    result(repository, step.clone()).await,
                    expected,
                    "{:?}",
                    step
                );
            }
            Ok(())
        })
    });
    tested.unwrap_or_else(|error| panic!("{error}"));
}
