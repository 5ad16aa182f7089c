//! Counts of one worker. Only the worker writes, so that no other worker delays it.

use std::{
    iter,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use actix_web::{HttpResponse, http::StatusCode};
use prometheus_client::metrics::counter::Counter;

use super::{
    durations::Durations,
    labels::{ConnectionLimit, HandshakeResult, Idempotency, MethodLabel, Operation, RequestLabels, Shed},
};
use crate::{error::ApiError, middleware::deprecation::DEPRECATION, pets::IDEMPOTENCY_REPLAYED};

/// Statuses of responses.
pub(super) const STATUSES: Range<u16> = 200..600;

/// Number of responses by operation, method and status.
#[derive(Debug)]
struct Responses(Vec<AtomicU64>);

impl Default for Responses {
    fn default() -> Self {
        let series = Operation::ALL.len() * MethodLabel::ALL.len() * STATUSES.len();
        Self(iter::repeat_with(AtomicU64::default).take(series).collect())
    }
}

/// Counts of one worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerMetrics {
    responses: Responses,
    pub(super) durations: [Durations; Operation::ALL.len()],
    pub(super) shed: [Counter; Shed::ALL.len()],
    pub(super) deprecated: Counter,
    pub(super) idempotency: [Counter; Idempotency::ALL.len()],
    pub(crate) connections_accepted: Counter,
    pub(crate) connections_ended: Counter,
    pub(super) connections_refused: [Counter; ConnectionLimit::ALL.len()],
    pub(crate) handshakes: [Counter; HandshakeResult::ALL.len()],
    pub(crate) received_bytes: Counter,
    pub(crate) sent_bytes: Counter,
}

impl WorkerMetrics {
    /// Counts a response of the application.
    pub(crate) fn count_response<B>(&self, labels: RequestLabels, response: &HttpResponse<B>, duration: Duration) {
        self.count(labels, response.status(), duration);
        let headers = response.headers();
        if labels.operation == Operation::GetPet && headers.contains_key(DEPRECATION) {
            self.deprecated.inc();
        }
        let error = response.error().and_then(|error| error.as_error::<ApiError>());
        if let Some(shed) = error.and_then(ApiError::shed) {
            self.shed[shed as usize].inc();
        }
        let idempotency = match error {
            None if labels.operation == Operation::CreatePet && headers.contains_key(IDEMPOTENCY_REPLAYED) => {
                Idempotency::Replayed
            }
            Some(ApiError::IdempotencyConflict) => Idempotency::Conflict,
            Some(ApiError::IdempotencyMismatch) => Idempotency::Mismatch,
            _ => return,
        };
        self.idempotency[idempotency as usize].inc();
    }

    /// Counts a request whose handler panicked.
    pub(crate) fn count_panic(&self, labels: RequestLabels, duration: Duration) {
        self.count(labels, StatusCode::INTERNAL_SERVER_ERROR, duration);
    }

    /// Counts a request that was refused before the application received it.
    pub(crate) fn count_refusal(&self, status: u16) {
        self.count_status(RequestLabels::REFUSED, status);
    }

    fn count(&self, labels: RequestLabels, status: StatusCode, duration: Duration) {
        self.count_status(labels, status.as_u16());
        self.durations[labels.operation as usize].add(duration);
    }

    fn count_status(&self, labels: RequestLabels, status: u16) {
        if let Some(count) = self.response(labels, status) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn response(&self, labels: RequestLabels, status: u16) -> Option<&AtomicU64> {
        STATUSES.contains(&status).then(|| {
            let series = labels.operation as usize * MethodLabel::ALL.len() + labels.method as usize;
            &self.responses.0[series * STATUSES.len() + usize::from(status - STATUSES.start)]
        })
    }

    /// Returns the number of responses.
    pub(super) fn responses(&self, labels: RequestLabels, status: u16) -> u64 {
        self.response(labels, status).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Counts a connection that is closed because of a limit.
    pub(crate) fn refuse_connection(&self, limit: ConnectionLimit) {
        self.connections_refused[limit as usize].inc();
    }

    /// Counts a TLS handshake that has ended.
    pub(crate) fn count_handshake(&self, result: HandshakeResult) {
        self.handshakes[result as usize].inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_of_responses_has_a_count_of_its_own() {
        let metrics = WorkerMetrics::default();
        let series = || RequestLabels::all().flat_map(|labels| STATUSES.map(move |status| (labels, status)));
        for (labels, status) in series() {
            assert_eq!(metrics.responses(labels, status), 0, "{labels:?} {status}");
            metrics.count_status(labels, status);
        }
        for (labels, status) in series() {
            assert_eq!(metrics.responses(labels, status), 1, "{labels:?} {status}");
        }
    }

    #[test]
    fn a_status_that_no_response_has_is_not_counted() {
        let metrics = WorkerMetrics::default();
        for status in [STATUSES.start - 1, STATUSES.end] {
            metrics.count_status(RequestLabels::REFUSED, status);
            assert_eq!(metrics.responses(RequestLabels::REFUSED, status), 0);
        }
    }
}
