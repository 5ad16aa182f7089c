//! The header `Server-Timing` (W3C Server Timing): the time that a request spent in authentication, queue and storage.
//!
//! The times are those of spans. [`ServerTimingLayer`] adds them up in the span of the request, from where the
//! middleware reads them.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use actix_web::http::header::{HeaderName, HeaderValue};
use tracing::{
    Span, Subscriber,
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Layer, Registry,
    layer::Context,
    registry::{LookupSpan, SpanRef},
};

use super::spans;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// The span of the PostgreSQL adapter for the time in a queue. It is inside of the span `storage`.
const QUEUE: &str = "queue";

/// Adds up the times of the spans of each request.
#[derive(Debug, Default)]
pub struct ServerTimingLayer;

/// The times of a request, in its span. `None`: there was no such span.
#[derive(Default)]
struct Times {
    authentication: Option<Duration>,
    queue: Option<Duration>,
    storage: Option<Duration>,
}

/// In a span: the end of its time that was added already.
struct Added(Instant);

impl Times {
    fn get_mut(&mut self, name: &str) -> Option<&mut Duration> {
        let time = match name {
            spans::AUTHENTICATION => &mut self.authentication,
            QUEUE => &mut self.queue,
            spans::STORAGE => &mut self.storage,
            _ => return None,
        };
        Some(time.get_or_insert_default())
    }

    /// Returns the header, in milliseconds. The time in the queue does not count as time in the storage.
    fn header(&self) -> Option<HeaderValue> {
        let storage = self.storage.map(|storage| storage.saturating_sub(self.queue.unwrap_or_default()));
        let mut header = String::new();
        for (name, time) in [("auth", self.authentication), ("queue", self.queue), ("storage", storage)] {
            if let Some(time) = time {
                let separator = if header.is_empty() { "" } else { ", " };
                let _ = write!(header, "{separator}{name};dur={:.3}", time.as_secs_f64() * 1000.0);
            }
        }
        HeaderValue::try_from(header).ok().filter(|header| !header.is_empty())
    }
}

/// Returns the header for the span of a request. `None` if nothing was measured.
pub(super) fn header(request: &Span) -> Option<(HeaderName, HeaderValue)> {
    let header = request.with_subscriber(|(id, dispatch)| {
        let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
        span.extensions().get::<Times>()?.header()
    });
    Some((SERVER_TIMING, header??))
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ServerTimingLayer {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        match span.name() {
            spans::REQUEST => extensions.insert(Times::default()),
            _ => extensions.insert(Added(Instant::now())),
        }
    }

    // A span is closed after its children, which may outlive it in another thread.
    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        add(context.span(id));
    }

    // A span of a queue is never entered.
    fn on_close(&self, id: Id, context: Context<'_, S>) {
        add(context.span(&id));
    }
}

/// Adds the time of a span since its start, or since it was added last, to the span of the request.
fn add<S: for<'a> LookupSpan<'a>>(span: Option<SpanRef<'_, S>>) {
    let Some(span) = span else { return };
    let mut extensions = span.extensions_mut();
    let Some(Added(end)) = extensions.get_mut() else { return };
    let time = end.elapsed();
    *end += time;
    drop(extensions);
    for ancestor in span.scope().skip(1) {
        if let Some(times) = ancestor.extensions_mut().get_mut::<Times>()
            && let Some(sum) = times.get_mut(span.name())
        {
            *sum += time;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use tracing_subscriber::{filter::Targets, layer::SubscriberExt};

    use super::*;

    fn milliseconds(header: &str, name: &str) -> Option<f64> {
        header.split(", ").find_map(|metric| metric.strip_prefix(name)?.strip_prefix(";dur=")?.parse().ok())
    }

    /// Runs `work` in the span of a request, and returns its header.
    fn header_of(work: impl FnOnce()) -> Option<String> {
        let layer = ServerTimingLayer.with_filter(Targets::new().with_target("trace", tracing::Level::TRACE));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = spans::unsampled_request(true);
            span.in_scope(work);
            header(&span).map(|(_, value)| value.to_str().unwrap().to_owned())
        })
    }

    #[expect(clippy::disallowed_methods, reason = "the time that passes is the subject")]
    fn wait(milliseconds: u64) {
        sleep(Duration::from_millis(milliseconds));
    }

    #[test]
    fn the_header_has_the_time_of_each_kind_of_span() {
        let start = Instant::now();
        let header = header_of(|| {
            spans::authentication().in_scope(|| wait(2));
            spans::storage().in_scope(|| {
                for _ in 0..2 {
                    let queue = tracing::trace_span!(target: "trace", "queue");
                    wait(30);
                    drop(queue);
                }
                wait(5);
            });
        });
        let header = header.expect("a header");
        let [auth, queue, storage] = ["auth", "queue", "storage"].map(|name| milliseconds(&header, name).unwrap());
        assert!(auth >= 2.0 && queue >= 60.0 && storage >= 5.0, "{header}");
        // The times in the header are rounded.
        let total = start.elapsed().as_secs_f64() * 1000.0 + 1.0;
        assert!(queue + storage < total, "the time in the queue is not time in the storage: {header} of {total}");
        assert!(header.starts_with("auth;dur="), "{header}");
    }

    #[test]
    fn a_request_without_spans_has_no_header() {
        assert_eq!(header_of(|| ()), None);
    }

    #[test]
    fn a_span_that_another_thread_holds_counts_until_its_work_ends() {
        let mut held = None;
        let header = header_of(|| {
            let storage = spans::storage();
            storage.in_scope(|| wait(2));
            held = Some(storage);
        });
        let header = header.expect("a header");
        assert!(milliseconds(&header, "storage").is_some_and(|storage| storage >= 2.0), "{header}");
        assert_eq!(milliseconds(&header, "queue"), None, "{header}");
    }
}
