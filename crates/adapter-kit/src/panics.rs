use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::sync::watch;

/// Whether a task has panicked that a storage needs until the end of the process. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Panics(watch::Sender<bool>);

impl Panics {
    /// Runs a task, on any runtime, and notes its panic.
    pub async fn note(self, task: impl Future<Output = ()> + Send) {
        if AssertUnwindSafe(task).catch_unwind().await.is_err() {
            self.0.send_replace(true);
        }
    }

    /// Waits for the first panic.
    pub async fn first(&self) {
        // It does not fail: this is a sender.
        let _ = self.0.subscribe().wait_for(|&panicked| panicked).await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn a_panic_of_any_task_is_noted_and_its_end_is_not() {
        let panics = Panics::default();
        let mut first = pin!(panics.first());
        panics.clone().note(async {}).await;
        assert!(first.as_mut().now_or_never().is_none());
        panics.clone().note(async { panic!("on purpose") }).await;
        first.await;
        panics.first().await;
    }
}
