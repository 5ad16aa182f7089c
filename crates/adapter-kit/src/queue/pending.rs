use animal_store_app::ports::StoreFailure;
use tokio::sync::oneshot;
use tracing::{Span, level_filters::LevelFilter, trace_span};

use super::Request;
use crate::{concurrency::Instant, metrics::QueueMetrics};

pub(super) type Receiver<R> = oneshot::Receiver<Result<<R as Request>::Response, StoreFailure>>;

/// A request, and the channel for its response. Dropping it fails the request.
pub struct Pending<R: Request> {
    /// The request.
    pub request: R,
    response: oneshot::Sender<Result<R::Response, StoreFailure>>,
    /// `None` after the request was sent.
    queued_at: Option<Instant>,
    /// The span `queue`, or the span `statement` after the request was sent.
    span: Span,
    /// The span of the client, in which both are. It ends after them.
    parent: Span,
}

impl<R: Request> Pending<R> {
    /// Begins the span `queue` in the current span. Without one, the request has no spans: a span that all filters
    /// refuse would still be stored.
    pub(super) fn new(request: R, queued_at: Instant) -> (Self, Receiver<R>) {
        let (response, receiver) = oneshot::channel();
        let wanted = LevelFilter::current() == LevelFilter::TRACE;
        let parent = if wanted {
            Span::current()
        } else {
            Span::none()
        };
        let span = if parent.is_disabled() {
            Span::none()
        } else {
            trace_span!(target: "trace", "queue")
        };
        (
            Self {
                request,
                response,
                queued_at: Some(queued_at),
                span,
                parent,
            },
            receiver,
        )
    }

    /// Whether the client still waits for the response.
    pub fn is_awaited(&self) -> bool {
        !self.response.is_closed()
    }

    /// Records that the request is sent in a batch of this size. Begins the span `statement`.
    pub fn sent(&mut self, batch_size: usize, metrics: &QueueMetrics) {
        if let Some(queued_at) = self.queued_at.take() {
            metrics
                .wait
                .observe((Instant::now() - queued_at).as_secs_f64());
        }
        if !self.parent.is_disabled() {
            self.span = trace_span!(target: "trace", parent: &self.parent, "statement", batch_size);
        }
    }

    /// Sends the response that `respond` makes of the request. What the request holds is released before.
    pub fn respond(
        self,
        metrics: &QueueMetrics,
        respond: impl FnOnce(R) -> Result<R::Response, StoreFailure>,
    ) {
        let Self {
            request,
            response: sender,
            span,
            parent,
            ..
        } = self;
        let response = respond(request);
        drop(span);
        drop(parent);
        // An unknown outcome is also counted if the client has disconnected, and again if it has waited in vain.
        if let Err(Err(failure @ StoreFailure::OutcomeUnknown(_))) = sender.send(response) {
            metrics.failures.count(&failure);
        }
    }
}

#[cfg(test)]
mod tests;
