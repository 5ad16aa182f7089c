use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};
use tokio_postgres::{
    AsyncMessage, Client, Connection,
    error::{DbError, Severity, SqlState},
};

use super::within::within;
use crate::error::ConnectionError;

/// A connection to a server.
pub(crate) struct OpenConnection {
    pub(crate) client: Client,
    pub(crate) task: ConnectionTask,
}

/// The task that reads and writes a connection. Dropping it closes the connection.
pub(crate) struct ConnectionTask {
    task: JoinSet<Result<(), ConnectionError>>,
    /// Whether the server warned of a commit that it did not wait to replicate.
    unreplicated: Arc<AtomicBool>,
    /// Whether the server reports with each response whether it can write, as PostgreSQL 14 and later do.
    pub(super) reports_role: bool,
}

impl ConnectionTask {
    /// Reads and writes this connection on the current runtime. If `of_primary`, that ends as soon as the server
    /// reports that it is read-only. What a pooler reports can be out of date.
    pub(super) fn of<S, T>(mut connection: Connection<S, T>, of_primary: bool) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let unreplicated = Arc::new(AtomicBool::new(false));
        let reports_role = connection.parameter("in_hot_standby").is_some();
        let warned = Arc::clone(&unreplicated);
        let run = poll_fn(move |context| {
            loop {
                let message = connection.poll_message(context);
                let is_on = |parameter| connection.parameter(parameter) == Some("on");
                if of_primary && (is_on("in_hot_standby") || is_on("default_transaction_read_only"))
                {
                    return Poll::Ready(Err(ConnectionError::ReadOnly));
                }
                match ready!(message) {
                    // It arrives before the response to the commit.
                    Some(Ok(AsyncMessage::Notice(notice))) if is_about_a_commit(&notice) => {
                        warned.store(true, Ordering::Relaxed);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Poll::Ready(Err(error.into())),
                    None => return Poll::Ready(Ok(())),
                }
            }
        });
        Self {
            reports_role,
            ..Self::new(run, unreplicated)
        }
    }

    pub(crate) fn new(
        run: impl Future<Output = Result<(), ConnectionError>> + Send + 'static,
        unreplicated: Arc<AtomicBool>,
    ) -> Self {
        let mut task = JoinSet::new();
        task.spawn(run);
        Self {
            task,
            unreplicated,
            reports_role: true,
        }
    }

    /// Waits for the end of the connection, and returns its reason.
    pub(crate) async fn ended(&mut self) -> ConnectionError {
        let ended = self.task.join_next().await;
        ended
            .and_then(Result::ok)
            .and_then(Result::err)
            .unwrap_or(ConnectionError::Closed)
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.task.try_join_next().is_some()
    }

    pub(crate) fn commits(&self) -> Commits {
        Commits(Arc::clone(&self.unreplicated))
    }
}

/// The commits of a connection.
pub(crate) struct Commits(Arc<AtomicBool>);

impl Commits {
    /// Waits for the response to a commit. Fails with [`ConnectionError::Unreplicated`] if the server warns that it did
    /// not wait for a standby.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        response: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, ConnectionError> {
        self.0.store(false, Ordering::Relaxed);
        let committed = within(limit, response).await?;
        if self.0.load(Ordering::Relaxed) {
            Err(ConnectionError::Unreplicated)
        } else {
            Ok(committed)
        }
    }
}

/// Whether this is the warning of a commit whose wait for a standby an administrator cancelled: PostgreSQL commits
/// nevertheless. A warning of a trigger's function has a context, and a commit has none.
fn is_about_a_commit(notice: &DbError) -> bool {
    notice.parsed_severity() == Some(Severity::Warning)
        && *notice.code() == SqlState::WARNING
        && notice.where_().is_none()
}
