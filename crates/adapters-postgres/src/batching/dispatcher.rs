use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use animal_store_adapter_kit::{
    Outage,
    queue::{Pending, Request, Taker},
};
use animal_store_app::ports::StoreFailure;
use futures_util::{FutureExt, future::select_all};
use tokio::{
    select,
    sync::{Mutex, OwnedMutexGuard, watch},
    time::{Instant, sleep, timeout},
};

use super::session::{BatchError, Extent, Failure, Session};
use crate::{
    connection::{ConnectionSettings, ConnectionTask},
    metrics::{ConnectionMetrics, ConnectionState, Count, KindMetrics},
};

/// After this time, the next batch leaves on another connection. A batch takes less, unless PostgreSQL or the
/// connection is slow. Several batches in flight at any time would be smaller, and so cost more.
const SLOW: Duration = Duration::from_millis(5);

/// Owns a connection, replaces it if necessary, and executes batches on it, one at a time.
pub(crate) struct Dispatcher<S: Session> {
    /// In the order in which they are served.
    lanes: Vec<Lane<S::Request>>,
    /// The dispatcher that takes the next batch has the turn, until its batch is slow or its connection is lost.
    turn: Arc<Mutex<()>>,
    settings: ConnectionSettings,
    metrics: ConnectionMetrics,
    usable: watch::Sender<usize>,
    state: InState,
    outage: Outage,
}

/// The requests of one kind. Dispatchers share it.
pub(super) struct Lane<R: Request> {
    pub(super) taker: Taker<R>,
    pub(super) metrics: KindMetrics,
}

/// A connection in a state, as metrics and clients see it until this is dropped.
struct InState {
    count: Count,
    /// `None` if it cannot be used.
    usable: Option<watch::Sender<usize>>,
}

impl<S: Session> Dispatcher<S> {
    pub(super) fn new(
        lanes: Vec<Lane<S::Request>>,
        turn: Arc<Mutex<()>>,
        settings: ConnectionSettings,
        metrics: ConnectionMetrics,
        usable: watch::Sender<usize>,
    ) -> Self {
        let state = InState::new(&metrics, &usable, ConnectionState::Connecting);
        let outage = Outage::new(&settings.outages);
        Self { lanes, turn, settings, metrics, usable, state, outage }
    }

    /// Runs until the batchers are dropped and the batch in flight has ended.
    pub(crate) async fn run(mut self) {
        let batchers = self.usable.clone();
        select! {
            is_ready = self.schema_is_ready() => if !is_ready { return },
            () = batchers.closed() => return,
        }
        let mut is_replacement = false;
        loop {
            let start = Instant::now();
            let opened = select! {
                opened = S::open(&self.settings) => opened,
                () = batchers.closed() => return,
            };
            let address = &self.settings.endpoint;
            match opened {
                Ok((session, task)) => {
                    if self.outage.succeeded() {
                        tracing::info!(%address, "connected to PostgreSQL again");
                    }
                    self.metrics.reconnects.inc_by(is_replacement.into());
                    is_replacement = true;
                    self.enter(ConnectionState::Connected);
                    let Some(reason) = self.serve(session, task).await else { return };
                    let address = &self.settings.endpoint;
                    tracing::warn!(%address, purpose = S::PURPOSE, reason, "a connection to PostgreSQL was lost");
                }
                Err(error) => self.outage.failed(error.to_string(), |reason| address.log_unavailable(reason)),
            }
            self.enter(ConnectionState::Unavailable);
            let pause = self.outage.next_pause(start.elapsed(), self.settings.postgres.connect_timeout);
            select! {
                () = sleep(pause) => {}
                () = batchers.closed() => return,
            }
        }
    }

    /// Waits until the schema can be used. Returns `false` if it never can.
    async fn schema_is_ready(&mut self) -> bool {
        let mut ready = self.settings.schema_ready.clone();
        if !*ready.borrow() {
            self.enter(ConnectionState::Unavailable);
        }
        ready.wait_for(|&ready| ready).await.is_ok()
    }

    /// Without any connection, pending requests fail.
    fn enter(&mut self, state: ConnectionState) {
        self.state = InState::new(&self.metrics, &self.usable, state);
        if *self.usable.borrow() == 0 {
            for lane in &self.lanes {
                fail(lane.taker.take(usize::MAX), &BatchError::not_connected());
            }
        }
    }

    /// Executes batches until the connection has to be replaced, and returns the reason. `None`: the batchers are
    /// dropped.
    async fn serve(&mut self, mut session: S, mut task: ConnectionTask) -> Option<String> {
        let mut turn = None;
        loop {
            let index = select! {
                biased;
                error = task.ended() => return Some(error.to_string()),
                next = self.next_lane(&mut turn) => next?,
            };
            // Other kinds are served first the next time.
            self.lanes.rotate_left(index + 1);
            let lane = self.lanes.last()?;
            let mut execution = pin!(self.execute(&mut session, lane.taker.take(S::MAX_ROWS), &lane.metrics));
            let executed = if let Ok(executed) = timeout(SLOW, &mut execution).await {
                executed
            } else {
                turn = None;
                execution.await
            };
            if let Err(reason) = executed {
                return Some(reason.to_owned());
            }
        }
    }

    /// Waits for the turn, and then for requests of any kind. `None` after the batchers are dropped.
    async fn next_lane(&self, turn: &mut Option<OwnedMutexGuard<()>>) -> Option<usize> {
        if turn.is_none() {
            *turn = Some(Arc::clone(&self.turn).lock_owned().await);
        }
        let (is_open, index, _) = select_all(self.lanes.iter().map(|lane| lane.taker.ready().boxed())).await;
        is_open.then_some(index)
    }

    /// Executes a batch, and smaller ones in its place if one of its requests may have failed the others. Fails if the
    /// connection has to be replaced.
    async fn execute(
        &self,
        session: &mut S,
        batch: Vec<Pending<S::Request>>,
        metrics: &KindMetrics,
    ) -> Result<(), &'static str> {
        // Bounds the delay of the queue, however often the batch is split.
        let deadline = Instant::now() + self.settings.postgres.timeout * 2;
        let mut parts = vec![batch];
        while let Some(mut part) = parts.pop() {
            part.retain(Pending::is_awaited);
            if part.is_empty() {
                continue;
            }
            let result = if Instant::now() > deadline {
                Err(BatchError::Timeout.of(Extent::Batch))
            } else {
                self.execute_part(session, &mut part, metrics).await
            };
            match result {
                Ok(responses) => {
                    for (pending, response) in part.into_iter().zip(responses) {
                        pending.respond(|_| response);
                    }
                }
                Err(Failure { extent: Extent::Request, .. }) if part.len() > 1 => {
                    metrics.retries.inc();
                    let second = part.split_off(part.len().div_ceil(2));
                    parts.extend([second, part]);
                }
                Err(Failure { error, extent }) => {
                    fail(part, &error);
                    if let Extent::Connection(reason) = extent {
                        fail(parts.into_iter().flatten(), &BatchError::not_connected());
                        return Err(reason);
                    }
                }
            }
        }
        Ok(())
    }

    async fn execute_part(
        &self,
        session: &mut S,
        part: &mut [Pending<S::Request>],
        metrics: &KindMetrics,
    ) -> Result<Vec<Result<S::Response, StoreFailure>>, Failure> {
        let size = part.len();
        metrics.batch_size.observe(u32::try_from(size).unwrap_or(u32::MAX).into());
        for pending in &mut *part {
            pending.sent(size, &metrics.queue);
        }
        let requests: Vec<_> = part.iter().map(|pending| &pending.request).collect();
        let start = Instant::now();
        let execution = AssertUnwindSafe(session.execute(&requests, &self.settings)).catch_unwind().await;
        metrics.batch_duration.observe(start.elapsed().as_secs_f64());
        let result = execution.unwrap_or_else(|_| {
            let unknown = if S::CHANGES_PETS { BatchError::OutcomeUnknown } else { BatchError::Unavailable };
            Err(unknown("the batch panicked".to_owned()).of(Extent::Connection("a batch panicked")))
        });
        if let Err(Failure { error: BatchError::OutcomeUnknown(_), .. }) = result {
            self.settings.metrics.unknown_outcomes.inc_by(size as u64);
        }
        result
    }
}

fn fail<T, R>(batch: impl IntoIterator<Item = Pending<R>>, error: &BatchError)
where
    R: Request<Response = Result<T, StoreFailure>>,
{
    for pending in batch {
        pending.respond(|_| Err(error.clone().into()));
    }
}

impl<R: Request> Clone for Lane<R> {
    fn clone(&self) -> Self {
        Self { taker: self.taker.clone(), metrics: self.metrics.clone() }
    }
}

impl InState {
    fn new(metrics: &ConnectionMetrics, usable: &watch::Sender<usize>, state: ConnectionState) -> Self {
        let count = metrics.count(state).clone();
        count.inc();
        let usable = (state != ConnectionState::Unavailable).then(|| usable.clone());
        if let Some(usable) = &usable {
            usable.send_modify(|usable| *usable += 1);
        }
        Self { count, usable }
    }
}

impl Drop for InState {
    fn drop(&mut self) {
        self.count.dec();
        if let Some(usable) = &self.usable {
            usable.send_modify(|usable| *usable -= 1);
        }
    }
}
