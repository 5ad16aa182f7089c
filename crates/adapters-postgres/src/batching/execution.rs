use std::panic::AssertUnwindSafe;

use animal_store_adapter_kit::{
    metrics::QueueMetrics,
    queue::{Pending, Request},
};
use animal_store_app::ports::StoreFailure;
use futures_util::FutureExt;
use tokio::time::Instant;

use super::{
    replacement::Replacement,
    session::{Executed, Extent, Failure, Session},
};
use crate::connection::ConnectionSettings;

/// Why a session executes no further batch.
pub(super) enum Interruption<R: Request> {
    /// The connection is lost, for this reason.
    Lost(&'static str),
    /// The session is replaced, for this reason. These requests had no effect and have no response.
    Refused {
        reason: String,
        rest: Vec<Pending<R>>,
    },
}

/// Executes a batch, and smaller ones in its place if one of its requests may have failed the others.
pub(super) async fn execute<S: Session>(
    session: &mut S,
    batch: Vec<Pending<S::Request>>,
    replacement: &mut Replacement,
    settings: &ConnectionSettings,
    metrics: &QueueMetrics,
) -> Result<(), Interruption<S::Request>> {
    // Bounds the delay of the queue, however often the batch is split.
    let deadline = Instant::now() + settings.postgres.timeout * 2;
    let mut parts = vec![batch];
    while let Some(mut part) = parts.pop() {
        part.retain(Pending::is_awaited);
        if part.is_empty() {
            continue;
        }
        let result = if Instant::now() > deadline {
            Err(Failure::timeout(Extent::Batch))
        } else {
            execute_part(session, &mut part, settings, metrics).await
        };
        match result {
            Ok(responses) => {
                for (pending, response) in part.into_iter().zip(responses) {
                    pending.respond(metrics, |_| response);
                }
            }
            Err(Failure {
                extent: Extent::Request,
                ..
            }) if part.len() > 1 => {
                let second = part.split_off(part.len().div_ceil(2));
                parts.extend([second, part]);
            }
            Err(Failure {
                extent: Extent::Session,
                reason,
                ..
            }) if replacement.begin() => {
                parts.push(part);
                let rest = parts.into_iter().rev().flatten().collect();
                return Err(Interruption::Refused { reason, rest });
            }
            Err(failure) => {
                fail(part, metrics, || {
                    (failure.error)(failure.reason.clone().into())
                });
                if let Extent::Connection(reason) = failure.extent {
                    fail(parts.into_iter().flatten(), metrics, || {
                        StoreFailure::Unavailable(reason.into())
                    });
                    return Err(Interruption::Lost(reason));
                }
            }
        }
    }
    replacement.end();
    Ok(())
}

async fn execute_part<S: Session>(
    session: &mut S,
    part: &mut [Pending<S::Request>],
    settings: &ConnectionSettings,
    metrics: &QueueMetrics,
) -> Executed<S::Request> {
    let size = part.len();
    for pending in &mut *part {
        pending.sent(size, metrics);
    }
    let requests: Vec<_> = part.iter().map(|pending| &pending.request).collect();
    let start = Instant::now();
    let execution = AssertUnwindSafe(session.execute(&requests, settings))
        .catch_unwind()
        .await;
    metrics
        .batch_duration
        .observe(start.elapsed().as_secs_f64());
    execution.unwrap_or_else(|_| {
        let error = if S::CHANGES_PETS {
            StoreFailure::OutcomeUnknown
        } else {
            StoreFailure::Unavailable
        };
        Err(Failure {
            error,
            reason: "the batch panicked".to_owned(),
            extent: Extent::Connection("a batch panicked"),
        })
    })
}

/// Responds to each request with this error.
pub(super) fn fail<R: Request>(
    batch: impl IntoIterator<Item = Pending<R>>,
    metrics: &QueueMetrics,
    error: impl Fn() -> StoreFailure,
) {
    for pending in batch {
        pending.respond(metrics, |_| Err(error()));
    }
}
