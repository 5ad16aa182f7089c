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
