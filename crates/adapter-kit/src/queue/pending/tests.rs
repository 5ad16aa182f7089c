use std::sync::{Arc, Mutex};

use prometheus_client::{encoding::text::encode, registry::Registry};
use tracing::{
    Subscriber,
    span::{Attributes, Id},
    subscriber,
};
use tracing_subscriber::{Layer, layer::Context, prelude::*, registry::LookupSpan};

use super::*;

/// A request that is never executed.
struct Unsent;

impl Request for Unsent {
    type Response = ();
}

/// Records the begin and the end of spans, with their parents.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    /// Returns the records since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context
            .span(id)
            .unwrap()
            .parent()
            .map_or("nothing", |parent| parent.name());
        let metadata = attributes.metadata();
        assert_eq!(metadata.target(), "trace");
        self.0
            .lock()
            .unwrap()
            .push(format!("{} in {parent}", metadata.name()));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        self.0
            .lock()
            .unwrap()
            .push(format!("end of {}", context.span(&id).unwrap().name()));
    }
}

fn metrics(registry: &mut Registry) -> QueueMetrics {
    let [metrics] = QueueMetrics::register(registry, ["create"]);
    metrics
}

#[test]
fn a_request_is_in_a_span_until_it_is_sent_and_in_another_until_its_response() {
    let recorder = Recorder::default();
    let metrics = metrics(&mut Registry::default());
    let _guard = subscriber::set_default(tracing_subscriber::registry().with(recorder.clone()));
    let client = trace_span!(target: "trace", "storage");
    let pending = || client.in_scope(|| Pending::new(Unsent, Instant::now()));
    assert_eq!(recorder.take(), ["storage in nothing"]);

    let (mut first, mut response) = pending();
    assert_eq!(recorder.take(), ["queue in storage"]);
    first.sent(1, &metrics);
    assert_eq!(recorder.take(), ["statement in storage", "end of queue"]);
    // Its batch was split.
    first.sent(1, &metrics);
    assert_eq!(
        recorder.take(),
        ["statement in storage", "end of statement"]
    );
    first.respond(&metrics, |Unsent| Ok(()));
    assert_eq!(recorder.take(), ["end of statement"]);
    assert!(matches!(response.try_recv(), Ok(Ok(()))));

    // It was not sent.
    let (dropped, mut response) = pending();
    drop(dropped);
    assert_eq!(recorder.take(), ["queue in storage", "end of queue"]);
    assert!(matches!(
        response.try_recv(),
        Err(oneshot::error::TryRecvError::Closed)
    ));

    // The client has disconnected.
    let (mut left, response) = pending();
    left.sent(1, &metrics);
    assert!(left.is_awaited());
    drop((response, client));
    assert!(!left.is_awaited());
    assert_eq!(
        recorder.take(),
        ["queue in storage", "statement in storage", "end of queue"]
    );
    drop(left);
    assert_eq!(recorder.take(), ["end of statement", "end of storage"]);
}

#[test]
fn without_a_subscriber_a_request_has_no_span() {
    let (mut pending, _response) = Pending::new(Unsent, Instant::now());
    pending.sent(1, &metrics(&mut Registry::default()));
    assert!(pending.span.is_disabled() && pending.parent.is_none());
}

#[test]
fn only_an_unknown_outcome_is_counted_if_the_client_has_disconnected() {
    let mut registry = Registry::default();
    let metrics = metrics(&mut registry);
    for failure in [
        StoreFailure::Timeout,
        StoreFailure::OutcomeUnknown("lost".into()),
    ] {
        let (pending, _) = Pending::new(Unsent, Instant::now());
        pending.respond(&metrics, |Unsent| Err(failure));
    }
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for (reason, count) in [("timeout", 0), ("outcome_unknown", 1)] {
        assert!(
            text.contains(&format!(
                "storage_failures_total{{reason=\"{reason}\"}} {count}\n"
            )),
            "{text}"
        );
    }
}
