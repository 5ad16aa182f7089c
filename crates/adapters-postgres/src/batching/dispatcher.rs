use std::{ops::ControlFlow, pin::pin, sync::Arc, time::Duration};

use animal_store_adapter_kit::queue::{Pending, Request, Taker, Takers};
use tokio::{
    select,
    sync::{Mutex, OwnedMutexGuard, watch},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    execution::{Execution, Interruption, fail},
    failure::Lost,
    replacement::Replacement,
    session::{Connected, Session},
};
use crate::{
    connection::ConnectionSettings,
    error::{ConnectionError, READ_ONLY},
    metrics::{ConnectionMetrics, Count},
    purpose::Purpose,
};

/// After this time, the next batch leaves on another connection. A batch takes less, unless PostgreSQL or the
/// connection is slow. Several batches in flight at any time would be smaller, and so cost more.
const SLOW: Duration = Duration::from_millis(5);

/// Owns a connection, replaces it if necessary, and executes batches on it, one at a time.
struct Dispatcher<S: Session> {
    purpose: Purpose,
    queue: Arc<Takers<S::Request>>,
    /// The dispatcher that takes the next batch has the turn, until its batch is slow or its connection is lost.
    turns: Arc<Mutex<()>>,
    /// `None`: another dispatcher may have the turn.
    turn: Option<OwnedMutexGuard<()>>,
    settings: ConnectionSettings,
    metrics: ConnectionMetrics,
    state: InState<S::Request>,
    replacement: Replacement,
    last_attempt: Option<Instant>,
}

/// A connection in a state, as metrics and clients see it until this is dropped.
struct InState<R: Request> {
    count: Count,
    /// During the first attempt, requests wait for this dispatcher.
    _taker: Option<Taker<R>>,
}

/// Why a connection has ended, for the log. `None`: the sender of requests is dropped.
type End = Option<String>;

/// Starts the dispatchers of a queue on the current runtime, with a connection each.
pub(super) fn start<S: Session>(
    purpose: Purpose,
    queue: Takers<S::Request>,
    settings: &ConnectionSettings,
) -> Vec<JoinHandle<()>> {
    let turns = Arc::default();
    let queue = Arc::new(queue);
    let metrics = settings.metrics.connections(purpose);
    let dispatcher = || Dispatcher::<S> {
        purpose,
        turns: Arc::clone(&turns),
        turn: None,
        settings: settings.clone(),
        metrics: metrics.clone(),
        state: InState::new(&metrics.connecting, Some(queue.taker())),
        replacement: Replacement::default(),
        last_attempt: None,
        queue: Arc::clone(&queue),
    };
    (0..purpose.connections(&settings.postgres))
        .map(|_| tokio::spawn(settings.panics.clone().note(dispatcher().run())))
        .collect()
}

impl<S: Session> Dispatcher<S> {
    /// Runs until the sender is dropped and the batch in flight has ended.
    async fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        loop {
            let demoted = self.settings.demoted.subscribe();
            let connected = select! {
                connected = self.connect() => connected,
                () = queue.closed() => return,
            };
            let Some(connected) = connected else {
                return;
            };
            let taker = queue.taker();
            self.state = InState::new(&self.metrics.connected, None);
            let Some(reason) = self.serve(connected, taker, demoted).await else {
                return;
            };
            self.turn = None;
            // At its end, the process can close the connection first.
            if queue.is_closed() {
                return;
            }
            self.log_lost(&reason);
        }
    }

    fn log_lost(&self, reason: &str) {
        let address = &self.settings.endpoint;
        let purpose = self.purpose.as_str();
        tracing::warn!(%address, purpose, reason, "a connection to PostgreSQL was lost");
    }

    /// Opens a connection, after a pause if there was one before or an attempt failed. `None` if the schema can never
    /// be used.
    async fn connect(&mut self) -> Option<Connected<S>> {
        let mut schema_ready = self.settings.schema_ready.clone();
        if !*schema_ready.borrow() {
            self.disconnect();
        }
        schema_ready.wait_for(|&ready| ready).await.ok()?;
        let address = self.settings.endpoint.clone();
        loop {
            if let Some(attempt) = self.last_attempt {
                self.disconnect();
                let limit = self.settings.postgres.connect_timeout;
                let pause = self.settings.outage.next_pause(attempt.elapsed(), limit);
                sleep(pause).await;
            }
            self.last_attempt = Some(Instant::now());
            match S::open(self.purpose, &self.settings).await {
                Ok(connected) => {
                    if self.settings.outage.succeeded() {
                        tracing::info!(%address, "connected to PostgreSQL again");
                    }
                    return Some(connected);
                }
                Err(error) => {
                    let log = |reason: &str| address.log_unavailable(reason);
                    self.settings.outage.failed(error.to_string(), log);
                }
            }
        }
    }

    /// Without any dispatcher that takes requests, they fail.
    fn disconnect(&mut self) {
        self.state = InState::new(&self.metrics.unavailable, None);
    }

    /// Executes batches until the connection has to be replaced.
    async fn serve(
        &mut self,
        mut connected: Connected<S>,
        taker: Taker<S::Request>,
        mut demoted: watch::Receiver<()>,
    ) -> End {
        loop {
            select! {
                biased;
                error = connected.task.ended() => {
                    if matches!(error, ConnectionError::ReadOnly) {
                        self.settings.demoted.send_replace(());
                    }
                    return Some(error.to_string());
                }
                Ok(()) = demoted.changed() => return Some(READ_ONLY.to_owned()),
                is_open = self.next_batch(&taker) => if !is_open {
                    return None;
                },
            }
            let batch = taker.take(S::MAX_ROWS);
            if let ControlFlow::Break(reason) = self.execute(&mut connected, batch).await {
                return Some(reason);
            }
        }
    }

    /// Waits for the turn, and then for requests. `false` after the sender is dropped.
    async fn next_batch(&mut self, taker: &Taker<S::Request>) -> bool {
        if self.turn.is_none() {
            self.turn = Some(Arc::clone(&self.turns).lock_owned().await);
        }
        taker.ready().await
    }

    /// Executes a batch, in a new session if this one refuses it. Breaks with the reason if the connection has to be
    /// replaced.
    async fn execute(
        &mut self,
        connected: &mut Connected<S>,
        mut batch: Vec<Pending<S::Request>>,
    ) -> ControlFlow<String> {
        loop {
            let (failure, rest) = match self.execute_once(connected, batch).await {
                Ok(()) => return ControlFlow::Continue(()),
                Err(Interruption::Lost(lost)) => {
                    if lost == Lost::ReadOnly {
                        self.settings.demoted.send_replace(());
                    }
                    return ControlFlow::Break(lost.to_string());
                }
                Err(Interruption::Refused { failure, rest }) => (failure, rest),
            };
            self.turn = None;
            let reason = failure.reason();
            match S::open(self.purpose, &self.settings).await {
                Ok(opened) => *connected = opened,
                Err(error) => {
                    fail(rest, self.settings.metrics.queue(self.purpose), &failure);
                    // The database refuses a statement of every session, or no connection.
                    if error.refusal().is_some() {
                        self.replacement.stop();
                        return ControlFlow::Continue(());
                    }
                    return ControlFlow::Break(reason);
                }
            }
            self.log_lost(&reason);
            batch = rest;
        }
    }

    /// Executes a batch in this session. Another dispatcher gets the turn if the batch is slow.
    async fn execute_once(
        &mut self,
        connected: &mut Connected<S>,
        batch: Vec<Pending<S::Request>>,
    ) -> Result<(), Interruption<S::Request>> {
        let execution = Execution {
            purpose: self.purpose,
            settings: &self.settings,
            metrics: self.settings.metrics.queue(self.purpose),
        };
        let run = execution.run(&mut connected.session, batch, &mut self.replacement);
        let mut run = pin!(run);
        if let Ok(executed) = timeout(SLOW, &mut run).await {
            return executed;
        }
        self.turn = None;
        run.await
    }
}

impl<R: Request> InState<R> {
    fn new(count: &Count, taker: Option<Taker<R>>) -> Self {
        count.inc();
        Self {
            count: count.clone(),
            _taker: taker,
        }
    }
}

impl<R: Request> Drop for InState<R> {
    fn drop(&mut self) {
        self.count.dec();
    }
}
