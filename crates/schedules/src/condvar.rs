use std::{
    future::poll_fn,
    sync::{Arc, LockResult, Mutex, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use shuttle::{
    future::block_on,
    rand::{Rng, thread_rng},
};

use crate::{check::scheduling_point, clock::Instant, mutex::MutexGuard, timer::Timer};

/// `std::sync::Condvar`. A notification wakes any of the threads that wait.
#[derive(Default)]
pub struct Condvar(Mutex<Vec<Arc<Waiter>>>);

/// `std::sync::WaitTimeoutResult`.
#[derive(Debug, Clone, Copy)]
pub struct WaitTimeoutResult(bool);

/// The waker of a thread, until the thread is notified.
#[derive(Default)]
struct Waiter(Mutex<Wait>);

#[derive(Default)]
struct Wait {
    notified: bool,
    waker: Option<Waker>,
}

impl Condvar {
    /// Creates a condition variable without waiting threads.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for a notification.
    ///
    /// # Errors
    /// Never: a panic ends the test.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        Ok(self.wait_for(guard, None).0)
    }

    /// Waits for a notification, or until the timeout has passed.
    ///
    /// # Errors
    /// Never: a panic ends the test.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        Ok(self.wait_for(guard, Some(Timer::new(Instant::now() + timeout))))
    }

    /// Notifies one of the waiting threads.
    pub fn notify_one(&self) {
        scheduling_point();
        let mut waiters = self.waiters();
        if !waiters.is_empty() {
            let index = thread_rng().gen_range(0..waiters.len());
            waiters.swap_remove(index).notify();
        }
    }

    /// Notifies all waiting threads.
    pub fn notify_all(&self) {
        scheduling_point();
        self.waiters().drain(..).for_each(|waiter| waiter.notify());
    }

    /// Returns whether the time was up.
    fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timer: Option<Timer>,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let (mutex, waiter) = (guard.unlock(), Arc::new(Waiter::default()));
        self.waiters().push(Arc::clone(&waiter));
        let timed_out = block_on(poll_fn(|context| {
            if waiter.poll_notified(context) {
                Poll::Ready(false)
            } else if timer.as_ref().is_some_and(|timer| timer.poll(context).is_ready()) {
                self.waiters().retain(|other| !Arc::ptr_eq(other, &waiter));
                Poll::Ready(true)
            } else {
                Poll::Pending
            }
        }));
        (mutex.lock().unwrap_or_else(PoisonError::into_inner), WaitTimeoutResult(timed_out))
    }

    fn waiters(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Waiter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitTimeoutResult {
    /// Returns whether the wait ended without a notification.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Waiter {
    fn poll_notified(&self, context: &Context<'_>) -> bool {
        let mut wait = self.wait();
        wait.waker = Some(context.waker().clone());
        wait.notified
    }

    fn notify(&self) {
        let mut wait = self.wait();
        wait.notified = true;
        if let Some(waker) = wait.waker.take() {
            waker.wake();
        }
    }

    fn wait(&self) -> std::sync::MutexGuard<'_, Wait> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
