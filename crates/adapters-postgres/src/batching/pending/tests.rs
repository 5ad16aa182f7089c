use std::sync::{Arc, Mutex};

use animal_store_app::ports::StorageError;
use prometheus_client::registry::Registry;
use tokio_postgres::Client;
use tracing::{
    Subscriber,
    span::{Attributes, Id},
    subscriber,
};
use tracing_subscriber::{Layer, layer::Context, prelude::*, registry::LookupSpan};

use super::*;
use crate::{
    batching::request::Failure,
    connection::{Connection, ConnectionSettings},
    metrics::Metrics,
};

/// A request that is never executed.
struct Unsent;

impl Request for Unsent {
    type Session = Client;
    type Outcome = ();
    type Response = ();
    type Error = StorageError;

    const MAX_ROWS: usize = 1;
    const OUTCOME_MATTERS: bool = false;

    fn rows(&self) -> usize {
        1
    }

    async fn execute(_: &[&Self], _: &Connection<Client>, _: &ConnectionSettings) -> Result<Vec<()>, Failure> {
        unreachable!("the test has no connection")
    }

    fn result(self, (): ()) -> Result<(), StorageError> {
        Ok(())
    }
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
        let parent = context.span(id).unwrap().parent().map_or("nothing", |parent| parent.name());
        let metadata = attributes.metadata();
        assert_eq!(metadata.target(), "trace");
        self.0.lock().unwrap().push(format!("{} in {parent}", metadata.name()));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        self.0.lock().unwrap().push(format!("end of {}", context.span(&id).unwrap().name()));
    }
}

fn sent(pending: &mut Pending<Unsent>) {
    let metrics = Metrics::new(&mut Registry::default());
    pending.sent(Instant::now(), 1, &metrics.gets);
}

#[test]
fn a_request_is_in_a_span_until_it_is_sent_and_in_another_until_its_response() {
    let recorder = Recorder::default();
    let _guard = subscriber::set_default(tracing_subscriber::registry().with(recorder.clone()));
    let client = trace_span!(target: "trace", "storage");
    let pending = || client.in_scope(|| Pending::new(Unsent, Instant::now()));
    assert_eq!(recorder.take(), ["storage in nothing"]);

    let (mut first, mut response) = pending();
    assert_eq!(recorder.take(), ["queue in storage"]);
    sent(&mut first);
    assert_eq!(recorder.take(), ["statement in storage", "end of queue"]);
    // Its batch was split.
    sent(&mut first);
    assert_eq!(recorder.take(), ["statement in storage", "end of statement"]);
    first.respond(());
    assert_eq!(recorder.take(), ["end of statement"]);
    assert!(matches!(response.try_recv(), Ok(Ok(Ok(())))));

    let (failed, mut response) = pending();
    failed.fail(BatchError::Timeout);
    assert_eq!(recorder.take(), ["queue in storage", "end of queue"]);
    assert!(matches!(response.try_recv(), Ok(Err(BatchError::Timeout))));

    // The client has disconnected.
    let (mut left, response) = pending();
    sent(&mut left);
    assert!(left.is_awaited());
    drop((response, client));
    assert!(!left.is_awaited());
    assert_eq!(recorder.take(), ["queue in storage", "statement in storage", "end of queue"]);
    drop(left);
    assert_eq!(recorder.take(), ["end of statement", "end of storage"]);
}

#[test]
fn without_a_subscriber_a_request_has_no_span() {
    let (mut pending, _response) = Pending::new(Unsent, Instant::now());
    sent(&mut pending);
    assert!(pending.span.is_disabled() && pending.parent.is_none());
}
