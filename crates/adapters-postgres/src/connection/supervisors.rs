use std::sync::Arc;

use super::{
    session::{ConnectionSettings, Session},
    supervisor::{Connection, Supervisor},
};
use crate::{error::NotConnected, metrics::ConnectionMetrics};

/// Connections that carry the same kinds of requests.
pub(crate) struct Supervisors<S>(Vec<Supervisor<S>>);

impl<S: Session> Supervisors<S> {
    /// Starts this number of connections, 1 or more. The log names the purpose.
    pub(crate) fn new(
        settings: &ConnectionSettings,
        purpose: &'static str,
        metrics: &ConnectionMetrics,
        count: usize,
    ) -> Self {
        Self((0..count).map(|_| Supervisor::new(settings.clone(), purpose, metrics)).collect())
    }

    /// Creates connections with these sessions, which are never replaced.
    #[cfg(all(test, shuttle))]
    pub(crate) fn connected(sessions: impl IntoIterator<Item = S>) -> Self {
        use std::sync::LazyLock;

        static TASK: LazyLock<tokio::task::JoinHandle<()>> = LazyLock::new(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.spawn(async {})
        });
        Self(sessions.into_iter().map(|session| Supervisor::connected(session, TASK.abort_handle())).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the connection that the fewest batches use. Waits for the first attempt to open one, but not for a later
    /// one.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection<S>>, NotConnected> {
        let connections = self.0.iter().filter_map(|supervisor| supervisor.connection_now().ok());
        // Each batch in flight holds its connection.
        match connections.min_by_key(Arc::strong_count) {
            Some(connection) => Ok(connection),
            None => self.0[0].connection().await,
        }
    }
}
