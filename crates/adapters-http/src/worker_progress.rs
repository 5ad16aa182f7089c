//! Shows when every worker thread has executed its earlier tasks.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

/// Checks the workers of a server.
#[derive(Debug, Clone)]
pub(crate) struct WorkerProgress {
    /// The current check, to which each worker adds a permit.
    requests: watch::Sender<Arc<Semaphore>>,
    workers: usize,
}

/// The checks, as a worker receives them.
pub(crate) type ProgressRequests = watch::Receiver<Arc<Semaphore>>;

impl WorkerProgress {
    pub(crate) fn new(workers: usize) -> (Self, ProgressRequests) {
        let (requests, receiver) = watch::channel(Arc::new(Semaphore::new(0)));
        (Self { requests, workers }, receiver)
    }

    /// Resolves when every worker has executed a task since the call.
    pub(crate) async fn executed(&self) {
        let confirmations = Arc::new(Semaphore::new(0));
        self.requests.send_replace(Arc::clone(&confirmations));
        let workers = u32::try_from(self.workers).unwrap_or(u32::MAX);
        let _ = confirmations.acquire_many(workers).await;
    }
}

/// Confirms each check, as a task of a worker.
pub(crate) async fn confirm_each(mut requests: ProgressRequests) {
    while requests.changed().await.is_ok() {
        requests.borrow_and_update().add_permits(1);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use tokio::{runtime::Builder, time::timeout};

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    /// Starts a worker that a task blocks until `end` is dropped.
    fn start_blocked_worker(requests: ProgressRequests, begin: mpsc::Sender<()>, end: mpsc::Receiver<()>) {
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async {
                let confirmations = tokio::spawn(confirm_each(requests));
                let _ = begin.send(());
                let _ = end.recv();
                confirmations.await
            })
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_is_blocked_prevents_the_confirmation_until_it_continues() {
        let (progress, requests) = WorkerProgress::new(2);
        let (end_block, blocked) = mpsc::channel::<()>();
        let (begin_block, block_begins) = mpsc::channel();
        tokio::spawn(confirm_each(requests.clone()));
        start_blocked_worker(requests, begin_block, blocked);
        block_begins.recv().expect("the worker runs");

        for _ in 0..2 {
            assert!(timeout(SHORT, progress.executed()).await.is_err());
        }
        drop(end_block);
        for _ in 0..2 {
            progress.executed().await;
        }
    }
}
