//! What code needs to run under a scheduler that selects each of its steps: `docs/adr/0037-checks-that-search.md`.
//!
//! The types have the interface of those of std and tokio that they stand for. Each operation is a scheduling point.
//! Time is modelled: a clock stands still until a timer fires, and each timer fires at a moment that the scheduler
//! selects. A timer that is not a pause may be late forever, so that a lost wake-up behind a timeout is a deadlock.
#![cfg(shuttle)]

mod check;
mod clock;
mod notify;
mod timer;

pub use check::{chance, check, scheduling_point};
pub use clock::Instant;
pub use notify::Notify;
pub use shuttle::{
    future, rand,
    sync::{Mutex, MutexGuard, atomic},
    thread,
};
pub use timer::{Elapsed, sleep, timeout, timeout_at};
