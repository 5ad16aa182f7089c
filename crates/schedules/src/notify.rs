use tokio::sync;

use crate::check::scheduling_point;

/// `tokio::sync::Notify`, with a scheduling point before each operation.
#[derive(Debug, Default)]
pub struct Notify(sync::Notify);

impl Notify {
    /// Creates a notification that nothing waits for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes one of the tasks that wait, or the next one.
    pub fn notify_one(&self) {
        scheduling_point();
        self.0.notify_one();
    }

    /// Waits for a notification.
    pub async fn notified(&self) {
        scheduling_point();
        self.0.notified().await;
    }
}
