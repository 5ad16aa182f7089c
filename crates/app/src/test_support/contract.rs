//! The contracts of the ports, as test suites for adapters.
//!
//! **Problem.** Adapters of one port drift apart. **Invariant.** Each adapter passes the same suite, against a real
//! server if it has one. **Proof.** The `contract` tests of each adapter.
//!
//! An adapter's test file defines how to set the adapter up. The macro writes one test for each rule:
//!
//! ```
//! # use std::{sync::Arc, time::Duration};
//! # use animal_store_app::ports::PetRepository;
//! /// Returns an empty repository with this retention of idempotency keys, and a guard that is dropped after the test.
//! async fn setup(retention: Duration) -> (Arc<dyn PetRepository>, ()) {
//!     // …
//! #   unreachable!("only compiled")
//! }
//!
//! animal_store_app::pet_repository_contract!(setup);
//! ```
//!
//! Each rule has its own setup and runs on two threads.

pub mod api_key_directory;
pub mod api_key_store;
pub mod api_key_uses;
pub mod bulk_storage;
pub mod idempotency;
pub mod pet_repository;

use std::time::{Duration, SystemTime};

use animal_store_domain::{CategoryId, NewPet, PetName, PetStatus};

const EVERY_STATUS: [Option<PetStatus>; 4] = [
    None,
    Some(PetStatus::Available),
    Some(PetStatus::Pending),
    Some(PetStatus::Sold),
];

/// Pets with unusual values of each member: lengths, characters, normalisation forms and white space of names.
fn various_pets() -> impl Iterator<Item = NewPet> {
    let texts = "x| Rex |e\u{301}|\u{e9}|👩‍🚀|\u{10ffff}|\u{202e}kcab|\u{feff}x|🐈\u{2028}|a\u{a0}b|'; --|\\N|\\\"a,b\"|NULL";
    let longest = ["x", "🐈"].map(|character| character.repeat(PetName::MAX_CHARS));
    let names = texts.split('|').map(str::to_owned).chain(longest);
    let categories = [i64::MIN, -1, 0, 1, i64::MAX]
        .into_iter()
        .cycle()
        .map(CategoryId::new);
    names
        .zip(categories)
        .zip(EVERY_STATUS.into_iter().cycle())
        .map(|((name, category), status)| {
            NewPet::new(PetName::parse(&name).expect("a valid name"), category).with_status(status)
        })
}

/// The time without its fraction of a second.
fn whole_second(time: SystemTime) -> SystemTime {
    let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since_1970.expect("after 1970").as_secs();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Writes one test for each rule of a suite.
#[doc(hidden)]
#[macro_export]
macro_rules! contract_tests {
    ($suite:ident, $setup:expr; $($rule:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                let (adapter, _guard) = $setup.await;
                $crate::test_support::contract::$suite::$rule(adapter).await;
            }
        )+
    };
}
