use std::panic::AssertUnwindSafe;

use animal_store_adapter_kit::{
    metrics::QueueMetrics,
    queue::{Pending, Request},
};
use animal_store_app::ports::StoreFailure;
use futures_util::FutureExt;
use tokio::time::Instant;

use super::{
    failure::{Affected, Failure, Lost},
    replacement::Replacement,
    session::{Executed, Session},
};
use crate::{connection::ConnectionSettings, purpose::Purpose};

/// Why a session executes no further batch.
pub(super) enum Interruption<R: Request> {
    /// The connection is lost.
    Lost(Lost),
    /// The session is replaced after this failure. These requests had no effect and have no response.
    Refused {
        failure: StoreFailure,
        rest: Vec<Pending<R>>,
    },
}

/// Executes batches of this purpose.
pub(super) struct Execution<'a> {
    pub(super) purpose: Purpose,
    pub(super) settings: &'a ConnectionSettings,
    pub(super) metrics: &'a QueueMetrics,
}

/// The requests of a batch that have no response yet, and why.
struct Unanswered<R: Request> {
    /// One of them may have failed the others.
    suspects: Vec<Pending<R>>,
    /// The session may be unable to execute them.
    refused: Vec<Pending<R>>,
    refusal: Option<StoreFailure>,
    lost: Option<Lost>,
}

impl Execution<'_> {
    /// Executes a batch, and smaller ones in its place if one of its requests may have failed the others.
    pub(super) async fn run<S: Session>(
        &self,
        session: &mut S,
        batch: Vec<Pending<S::Request>>,
        replacement: &mut Replacement,
    ) -> Result<(), Interruption<S::Request>> {
        // Bounds the delay of the queue, however often the batch is split.
        let deadline = Instant::now() + self.settings.postgres.timeout * 2;
        let mut parts = vec![batch];
        while let Some(mut part) = parts.pop() {
            part.retain(Pending::is_awaited);
            if part.is_empty() {
                continue;
            }
            let responses = if Instant::now() > deadline {
                let timeout = Failure::new(StoreFailure::Timeout, Affected::Batch);
                part.iter().map(|_| Err(timeout.clone())).collect()
            } else {
                self.execute(session, &mut part).await
            };
            let Unanswered {
                mut suspects,
                refused,
                refusal,
                lost,
            } = self.respond(part, responses, replacement);
            if !suspects.is_empty() {
                let second = suspects.split_off(suspects.len().div_ceil(2));
                parts.extend([second, suspects]);
            }
            parts.push(refused);
            if let Some(lost) = lost {
                let failure = StoreFailure::Unavailable(lost.to_string().into());
                fail(parts.into_iter().flatten(), self.metrics, &failure);
                return Err(Interruption::Lost(lost));
            }
            if let Some(failure) = refusal {
                let rest = parts.into_iter().rev().flatten().collect();
                return Err(Interruption::Refused { failure, rest });
            }
        }
        replacement.end();
        Ok(())
    }

    async fn execute<S: Session>(
        &self,
        session: &mut S,
        part: &mut [Pending<S::Request>],
    ) -> Executed<S::Request> {
        let size = part.len();
        for pending in &mut *part {
            pending.sent(size, self.metrics);
        }
        let requests: Vec<_> = part.iter().map(|pending| &pending.request).collect();
        let start = Instant::now();
        let execution = AssertUnwindSafe(session.execute(&requests, self.settings))
            .catch_unwind()
            .await;
        let seconds = start.elapsed().as_secs_f64();
        self.metrics.batch_duration.observe(seconds);
        execution.unwrap_or_else(|_| {
            let cause = "the batch panicked".into();
            let failure = if self.purpose.changes_pets() {
                StoreFailure::OutcomeUnknown(cause)
            } else {
                StoreFailure::Unavailable(cause)
            };
            let failure = Failure::new(failure, Affected::Connection(Lost::Panic));
            requests.iter().map(|_| Err(failure.clone())).collect()
        })
    }

    /// Sends the responses, but leaves the requests that are executed again.
    fn respond<R: Request>(
        &self,
        part: Vec<Pending<R>>,
        responses: Executed<R>,
        replacement: &mut Replacement,
    ) -> Unanswered<R> {
        let is_alone = part.len() == 1;
        let mut unanswered = Unanswered {
            suspects: Vec::new(),
            refused: Vec::new(),
            refusal: None,
            lost: None,
        };
        for (pending, response) in part.into_iter().zip(responses) {
            let failure = match response {
                Ok(response) => {
                    pending.respond(self.metrics, |_| Ok(response));
                    continue;
                }
                Err(failure) => failure,
            };
            match failure.affects {
                Affected::Row if !is_alone => {
                    unanswered.suspects.push(pending);
                    continue;
                }
                Affected::Session if unanswered.refusal.is_some() || replacement.begin() => {
                    unanswered.refusal = Some(failure.failure);
                    unanswered.refused.push(pending);
                    continue;
                }
                Affected::Connection(lost) => unanswered.lost = Some(lost),
                Affected::Row | Affected::Batch | Affected::Session => {}
            }
            pending.respond(self.metrics, |_| Err(failure.failure));
        }
        unanswered
    }
}

/// Responds to each request with this failure.
pub(super) fn fail<R: Request>(
    batch: impl IntoIterator<Item = Pending<R>>,
    metrics: &QueueMetrics,
    failure: &StoreFailure,
) {
    for pending in batch {
        pending.respond(metrics, |_| Err(failure.clone()));
    }
}
