//! The locks and timers of the lookup cache. `time` has those of tokio's clock.
//!
//! `scripts/schedules` tests it with those of `animal_store_schedules` in their place.

#[cfg(not(all(test, shuttle)))]
pub(crate) use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Instant,
};

#[cfg(all(test, shuttle))]
pub(crate) use animal_store_schedules::{
    self as time, Instant, Mutex, MutexGuard, Notify,
    atomic::{AtomicBool, AtomicU64},
};
#[cfg(not(all(test, shuttle)))]
pub(crate) use tokio::{sync::Notify, time};
