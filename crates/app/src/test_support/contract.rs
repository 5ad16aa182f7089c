//! The contract of the ports, as tests that every adapter has to pass.
//!
//! An adapter's test file says how to set the adapter up, and gets one test for each rule:
//!
//! ```
//! # use std::{sync::Arc, time::Duration};
//! # use animal_store_app::ports::PetRepository;
//! /// An empty repository that keeps idempotency keys for so long, and a guard that cleans up when the test ends.
//! async fn setup(retention: Duration) -> (Arc<dyn PetRepository>, ()) {
//!     // …
//! #   unreachable!("only compiled")
//! }
//!
//! animal_store_app::pet_repository_contract!(setup);
//! ```
//!
//! Each rule gets a setup of its own and runs on two threads.

pub mod api_key_directory;
pub mod api_key_store;
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
