use tokio::sync::oneshot;
use tracing::{Span, level_filters::LevelFilter, trace_span};

use super::request::{BatchError, Request};
use crate::{concurrency::Instant, metrics::KindMetrics};

/// The response to a request. The outer error is that of its batch.
pub(super) type Response<R> = Result<Result<<R as Request>::Response, <R as Request>::Error>, BatchError>;

/// A request, and the channel for its response.
pub(super) struct Pending<R: Request> {
    pub(super) request: R,
    response: oneshot::Sender<Response<R>>,
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
    pub(super) fn new(request: R, queued_at: Instant) -> (Self, oneshot::Receiver<Response<R>>) {
        let (response, receiver) = oneshot::channel();
        let wanted = LevelFilter::current() == LevelFilter::TRACE;
        let parent = if wanted { Span::current() } else { Span::none() };
        let span = if parent.is_disabled() { Span::none() } else { trace_span!(target: "trace", "queue") };
        (Self { request, response, queued_at: Some(queued_at), span, parent }, receiver)
    }

    /// Whether the client still waits for the response.
    pub(super) fn is_awaited(&self) -> bool {
        !self.response.is_closed()
    }

    /// Records that the request is sent in a batch of this size. Begins the span `statement`.
    pub(super) fn sent(&mut self, sent_at: Instant, batch_size: usize, metrics: &KindMetrics) {
        if let Some(queued_at) = self.queued_at.take() {
            metrics.queue_wait.observe((sent_at - queued_at).as_secs_f64());
        }
        if !self.parent.is_disabled() {
            // The filter of traces considers the current span, not an explicit parent.
            self.span = self.parent.in_scope(|| trace_span!(target: "trace", "statement", batch_size));
        }
    }

    pub(super) fn respond(self, outcome: R::Outcome) {
        self.end(|request| Ok(request.result(outcome)));
    }

    pub(super) fn fail(self, error: BatchError) {
        // Its idempotency key is free before the client can retry.
        self.end(|_| Err(error));
    }

    fn end(self, response: impl FnOnce(R) -> Response<R>) {
        let Self { request, response: sender, span, parent, .. } = self;
        let response = response(request);
        drop(span);
        drop(parent);
        // The client may have disconnected.
        let _ = sender.send(response);
    }
}
