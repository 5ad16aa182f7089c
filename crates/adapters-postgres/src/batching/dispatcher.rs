use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use animal_store_adapter_kit::queue::{Request, Taker, Takers};
use animal_store_app::ports::StoreFailure;
use futures_util::{FutureExt, future::select_all};
use tokio::{
    select,
    sync::{Mutex, OwnedMutexGuard, watch},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    execution::{Interruption, execute, fail},
    replacement::Replacement,
    session::Session,
};
use crate::{
    connection::{ConnectionSettings, ConnectionTask},
    error::{ConnectionError, READ_ONLY},
    metrics::{ConnectionMetrics, Count},
};

/// After this time, the next batch leaves on another connection. A batch takes less, unless PostgreSQL or the
/// connection is slow. Several batches in flight at any time would be smaller, and so cost more.
const SLOW: Duration = Duration::from_millis(5);

/// Owns a connection, replaces it if necessary, and executes batches on it, one at a time.
struct Dispatcher<S: Session> {
    /// One for each kind of request. Dispatchers share them.
    queues: Arc<[Takers<S::Request>]>,
    /// The dispatcher that takes the next batch has the turn, until its batch is slow or its connection is lost.
    turn: Arc<Mutex<()>>,
    settings: ConnectionSettings,
    metrics: ConnectionMetrics,
    state: InState<S::Request>,
    replacement: Replacement,
    last_attempt: Option<Instant>,
}

/// A connection in a state, as metrics and clients see it until this is dropped.
struct InState<R: Request> {
    count: Count,
    /// In the order in which they are served. None while the connection is unavailable.
    takers: Vec<Taker<R>>,
}

/// Starts dispatchers of these queues on the current runtime, with a connection each.
pub(super) fn start<S: Session>(
    queues: Vec<Takers<S::Request>>,
    settings: &ConnectionSettings,
    metrics: &ConnectionMetrics,
    connections: usize,
) -> Vec<JoinHandle<()>> {
    let (turn, queues) = (Arc::default(), Arc::from(queues));
    let dispatcher = || Dispatcher::<S> {
        turn: Arc::clone(&turn),
        settings: settings.clone(),
        metrics: metrics.clone(),
        state: InState::new(&metrics.connecting, &queues),
        replacement: Replacement::default(),
        last_attempt: None,
        queues: Arc::clone(&queues),
    };
    (0..connections)
        .map(|_| tokio::spawn(report_panic(dispatcher(), settings.panicked.clone())))
        .collect()
}

async fn report_panic<S: Session>(dispatcher: Dispatcher<S>, panicked: watch::Sender<bool>) {
    if AssertUnwindSafe(dispatcher.run())
        .catch_unwind()
        .await
        .is_err()
    {
        panicked.send_replace(true);
    }
}

impl<S: Session> Dispatcher<S> {
    /// Runs until the senders are dropped and the batch in flight has ended.
    async fn run(mut self) {
        let queues = Arc::clone(&self.queues);
        loop {
            let demoted = self.settings.demoted.subscribe();
            let connected = select! {
                connected = self.connect() => connected,
                () = queues[0].closed() => return,
            };
            let Some((session, task)) = connected else {
                return;
            };
            self.state = InState::new(&self.metrics.connected, &queues);
            let Some(reason) = self.serve(session, task, demoted).await else {
                return;
            };
            self.log_lost(&reason);
        }
    }

    fn log_lost(&self, reason: &str) {
        let address = &self.settings.endpoint;
        tracing::warn!(%address, purpose = S::PURPOSE, reason, "a connection to PostgreSQL was lost");
    }

    /// Opens a connection, after a pause if there was one before or an attempt failed. `None` if the schema can never
    /// be used.
    async fn connect(&mut self) -> Option<(S, ConnectionTask)> {
        let mut schema_ready = self.settings.schema_ready.clone();
        if !*schema_ready.borrow() {
            self.disconnect();
        }
        schema_ready.wait_for(|&ready| ready).await.ok()?;
        let address = self.settings.endpoint.clone();
        loop {
            if let Some(attempt) = self.last_attempt {
                self.disconnect();
                sleep(
                    self.settings
                        .outage
                        .next_pause(attempt.elapsed(), self.settings.postgres.connect_timeout),
                )
                .await;
            }
            self.last_attempt = Some(Instant::now());
            match S::open(&self.settings).await {
                Ok(connected) => {
                    if self.settings.outage.succeeded() {
                        tracing::info!(%address, "connected to PostgreSQL again");
                    }
                    return Some(connected);
                }
                Err(error) => self
                    .settings
                    .outage
                    .failed(error.to_string(), |reason| address.log_unavailable(reason)),
            }
        }
    }

    /// Without any dispatcher that takes requests, they fail.
    fn disconnect(&mut self) {
        self.state = InState::new(&self.metrics.unavailable, &[]);
    }

    /// Executes batches until the connection has to be replaced, and returns the reason. `None`: the senders are
    /// dropped.
    async fn serve(
        &mut self,
        mut session: S,
        mut task: ConnectionTask,
        mut demoted: watch::Receiver<()>,
    ) -> Option<String> {
        let mut turn = None;
        loop {
            let index = select! {
                biased;
                error = task.ended() => {
                    if matches!(error, ConnectionError::ReadOnly) {
                        self.settings.demoted.send_replace(());
                    }
                    return Some(error.to_string());
                }
                Ok(()) = demoted.changed() => return Some(READ_ONLY.to_owned()),
                next = self.next_kind(&mut turn) => next?,
            };
            // Other kinds are served first the next time.
            self.state.takers.rotate_left(index + 1);
            let taker = self.state.takers.last()?;
            let mut batch = taker.take(S::MAX_ROWS);
            loop {
                let executed = {
                    let mut execution = pin!(execute(
                        &mut session,
                        batch,
                        &mut self.replacement,
                        &self.settings,
                        taker.metrics()
                    ));
                    if let Ok(executed) = timeout(SLOW, &mut execution).await {
                        executed
                    } else {
                        turn = None;
                        execution.await
                    }
                };
                match executed {
                    Ok(()) => break,
                    Err(Interruption::Lost(reason)) => {
                        if reason == READ_ONLY {
                            self.settings.demoted.send_replace(());
                        }
                        return Some(reason.to_owned());
                    }
                    Err(Interruption::Refused { reason, rest }) => {
                        turn = None;
                        match S::open(&self.settings).await {
                            Ok(opened) => (session, task) = opened,
                            Err(error) => {
                                fail(rest, taker.metrics(), || {
                                    StoreFailure::Unavailable(reason.clone().into())
                                });
                                // The database refuses a statement of every session, or no connection.
                                if error.refusal().is_some() {
                                    self.replacement.stop();
                                    break;
                                }
                                return Some(reason);
                            }
                        }
                        self.log_lost(&reason);
                        batch = rest;
                    }
                }
            }
        }
    }

    /// Waits for the turn, and then for requests of any kind. `None` after the senders are dropped.
    async fn next_kind(&self, turn: &mut Option<OwnedMutexGuard<()>>) -> Option<usize> {
        if turn.is_none() {
            *turn = Some(Arc::clone(&self.turn).lock_owned().await);
        }
        let (is_open, index, _) =
            select_all(self.state.takers.iter().map(|taker| taker.ready().boxed())).await;
        is_open.then_some(index)
    }
}

impl<R: Request> InState<R> {
    fn new(count: &Count, queues: &[Takers<R>]) -> Self {
        count.inc();
        Self {
            count: count.clone(),
            takers: queues.iter().map(Takers::taker).collect(),
        }
    }
}

impl<R: Request> Drop for InState<R> {
    fn drop(&mut self) {
        self.count.dec();
    }
}
