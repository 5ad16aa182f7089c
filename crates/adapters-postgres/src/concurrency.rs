//! The locks, notifications and timers of `batching`, and of the idempotency keys in flight.
//!
//! `scripts/schedules` tests them with those of `animal_store_schedules` in their place.

#[cfg(not(all(test, shuttle)))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(all(test, shuttle))]
pub(crate) use animal_store_schedules::{Instant, Mutex, MutexGuard, Notify, sleep, timeout, timeout_at};
#[cfg(not(all(test, shuttle)))]
pub(crate) use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout, timeout_at},
};
