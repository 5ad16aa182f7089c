use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};

use shuttle::future::yield_now;

use crate::{check::chance, clock::Instant};

/// `tokio::time::error::Elapsed`: the time was up.
#[derive(Debug)]
pub struct Elapsed;

/// A timer that fires when the scheduler selects it, or never.
pub(crate) struct Timer {
    deadline: Instant,
    fires: bool,
}

impl Timer {
    pub(crate) fn new(deadline: Instant) -> Self {
        Self {
            deadline,
            fires: chance(2),
        }
    }

    /// Returns whether the timer fires now, which moves the clock to its deadline.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.deadline || self.fires && chance(3) {
            self.deadline.pass();
            return Poll::Ready(());
        }
        if self.fires {
            // It only wakes the task.
            let _ = pin!(yield_now()).poll(context);
        }
        Poll::Pending
    }
}

/// `tokio::time::sleep`: a pause that always ends.
pub async fn sleep(duration: Duration) {
    let timer = Timer {
        deadline: Instant::now() + duration,
        fires: true,
    };
    poll_fn(|context| timer.poll(context)).await;
}

/// `tokio::time::timeout`.
///
/// # Errors
/// The time was up before the future was ready.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Result<F::Output, Elapsed> {
    timeout_at(Instant::now() + duration, future).await
}

/// `tokio::time::timeout_at`.
///
/// # Errors
/// The time was up before the future was ready.
pub async fn timeout_at<F: Future>(deadline: Instant, future: F) -> Result<F::Output, Elapsed> {
    let timer = Timer::new(deadline);
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => timer.poll(context).map(|()| Err(Elapsed)),
    })
    .await
}
