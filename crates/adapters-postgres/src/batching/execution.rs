use std::panic::AssertUnwindSafe;

use animal_store_adapter_kit::queue::{Pending, Request};
use animal_store_app::ports::StoreFailure;
use futures_util::FutureExt;
use tokio::time::Instant;

use super::session::{Extent, Failure, Session, not_connected};
use crate::{connection::ConnectionSettings, metrics::KindMetrics};

/// Executes a batch, and smaller ones in its place if one of its requests may have failed the others. Fails with the
/// reason if the connection has to be replaced.
pub(super) async fn execute<S: Session>(
    session: &mut S,
    batch: Vec<Pending<S::Request>>,
    settings: &ConnectionSettings,
    metrics: &KindMetrics,
) -> Result<(), &'static str> {
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
                    pending.respond(|_| response);
                }
            }
            Err(Failure { extent: Extent::Request, .. }) if part.len() > 1 => {
                metrics.retries.inc();
                let second = part.split_off(part.len().div_ceil(2));
                parts.extend([second, part]);
            }
            Err(failure) => {
                fail(part, || failure.error());
                if let Extent::Connection(reason) = failure.extent {
                    fail(parts.into_iter().flatten(), not_connected);
                    return Err(reason);
                }
            }
        }
    }
    Ok(())
}

async fn execute_part<S: Session>(
    session: &mut S,
    part: &mut [Pending<S::Request>],
    settings: &ConnectionSettings,
    metrics: &KindMetrics,
) -> Result<Vec<Result<S::Response, StoreFailure>>, Failure> {
    let size = part.len();
    metrics.batch_size.observe(u32::try_from(size).unwrap_or(u32::MAX).into());
    for pending in &mut *part {
        pending.sent(size, &metrics.queue);
    }
    let requests: Vec<_> = part.iter().map(|pending| &pending.request).collect();
    let start = Instant::now();
    let execution = AssertUnwindSafe(session.execute(&requests, settings)).catch_unwind().await;
    metrics.batch_duration.observe(start.elapsed().as_secs_f64());
    let result = execution.unwrap_or_else(|_| {
        let error = if S::CHANGES_PETS { StoreFailure::OutcomeUnknown } else { StoreFailure::Unavailable };
        Err(Failure { error, reason: "the batch panicked".to_owned(), extent: Extent::Connection("a batch panicked") })
    });
    if let Err(failure) = &result
        && matches!(failure.error(), StoreFailure::OutcomeUnknown(_))
    {
        settings.metrics.unknown_outcomes.inc_by(size as u64);
    }
    result
}

pub(super) fn fail<T, R>(batch: impl IntoIterator<Item = Pending<R>>, error: impl Fn() -> StoreFailure)
where
    R: Request<Response = Result<T, StoreFailure>>,
{
    for pending in batch {
        pending.respond(|_| Err(error()));
    }
}
