//! The locks and the clock of the queue.
//!
//! `scripts/schedules` tests the queue with those of `animal_store_schedules` in their place.

#[cfg(not(all(test, shuttle)))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    time::Instant,
};

#[cfg(all(test, shuttle))]
pub(crate) use animal_store_schedules::{Condvar, Instant, Mutex, MutexGuard};
