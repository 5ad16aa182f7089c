use std::{
    ops::{Deref, DerefMut},
    sync::LockResult,
};

use shuttle::sync;

/// `std::sync::Mutex`. Its guard knows it, so that a condition variable can lock it again.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

/// `std::sync::MutexGuard`.
pub struct MutexGuard<'a, T> {
    guard: sync::MutexGuard<'a, T>,
    mutex: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Locks the mutex.
    ///
    /// # Errors
    /// Never: a panic ends the test.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        Ok(MutexGuard { guard: self.0.lock().expect("no panic under the lock"), mutex: self })
    }
}

impl<'a, T> MutexGuard<'a, T> {
    /// Unlocks the mutex. There is no scheduling point between this and the next operation.
    pub(crate) fn unlock(self) -> &'a Mutex<T> {
        self.mutex
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
