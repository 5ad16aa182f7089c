use prometheus_client::registry::Registry;
use tokio::{
    task::{JoinHandle, yield_now},
    time::timeout,
};

use super::*;

/// Has one row.
struct Get;

impl Request for Get {
    type Response = ();
}

/// Has this number of rows.
struct List(usize);

impl Request for List {
    type Response = ();

    fn rows(&self) -> usize {
        self.0
    }
}

fn queue_of<R: Request>(capacity: usize) -> (Arc<Sender<R>>, Takers<R>) {
    queue_with(capacity, None)
}

fn queue_with<R: Request>(
    capacity: usize,
    outcome_timeout: Option<Duration>,
) -> (Arc<Sender<R>>, Takers<R>) {
    let [metrics] = QueueMetrics::register(&mut Registry::default(), ["read"]);
    let (sender, takers) = queue(capacity, outcome_timeout, metrics);
    (Arc::new(sender), takers)
}

type Response = JoinHandle<Result<(), StoreFailure>>;

/// Puts a request into the queue.
async fn begin<R: Request<Response = ()>>(sender: &Arc<Sender<R>>, request: R) -> Response {
    let sender = Arc::clone(sender);
    let response = tokio::spawn(async move { sender.send(request, Duration::from_secs(1)).await });
    yield_now().await;
    response
}

#[tokio::test]
async fn a_batch_has_as_many_rows_as_fit_and_at_least_one_request() {
    let (sender, takers) = queue_of(10);
    let taker = takers.taker();
    for rows in [5, 1, 1, 1] {
        begin(&sender, List(rows)).await;
    }
    assert_eq!(
        [2, 2, 2, 2].map(|rows| taker.take(rows).len()),
        [1, 2, 1, 0]
    );

    let (sender, takers) = queue_of(10);
    let taker = takers.taker();
    for _ in 0..3 {
        begin(&sender, Get).await;
    }
    assert_eq!([2, 2].map(|rows| taker.take(rows).len()), [2, 1]);
}

/// Shares no batch.
struct Retry(bool);

impl Request for Retry {
    type Response = ();

    fn is_alone(&self) -> bool {
        self.0
    }
}

#[tokio::test]
async fn a_request_that_shares_no_batch_is_taken_alone() {
    let (sender, takers) = queue_of(10);
    let taker = takers.taker();
    for is_alone in [false, true, true, false, false] {
        begin(&sender, Retry(is_alone)).await;
    }
    assert_eq!([9; 5].map(|rows| taker.take(rows).len()), [1, 1, 1, 2, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_and_a_request_whose_time_has_passed_makes_room() {
    let (sender, takers) = queue_of(2);
    let taker = takers.taker();
    let first = begin(&sender, Get).await;
    let second = begin(&sender, Get).await;
    let refused = sender.send(Get, Duration::from_secs(1)).await;
    assert!(
        matches!(refused, Err(StoreFailure::Overloaded)),
        "{refused:?}"
    );
    for response in [first, second] {
        let late = response.await.unwrap();
        assert!(matches!(late, Err(StoreFailure::Timeout)), "{late:?}");
    }
    let third = begin(&sender, Get).await;
    for pending in taker.take(2) {
        pending.respond(taker.metrics(), |_| Ok(()));
    }
    assert!(third.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_request_whose_client_is_gone_is_not_taken() {
    let (sender, takers) = queue_of(2);
    let taker = takers.taker();
    begin(&sender, Get).await.abort();
    yield_now().await;
    assert!(taker.take(2).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_taken_waits_longer_for_its_outcome() {
    let (sender, takers) = queue_with(2, Some(Duration::from_secs(2)));
    let taker = takers.taker();
    let begun = Instant::now();
    let unanswered = begin(&sender, Get).await;
    let _taken = taker.take(1);
    let unknown = unanswered.await.unwrap();
    assert!(
        matches!(unknown, Err(StoreFailure::OutcomeUnknown(_))),
        "{unknown:?}"
    );
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
    let late = begin(&sender, Get).await.await.unwrap();
    assert!(matches!(late, Err(StoreFailure::Timeout)), "{late:?}");
}

#[tokio::test]
async fn without_a_taker_requests_fail_at_once() {
    let (sender, takers) = queue_of(2);
    let unserved = |response| matches!(response, Err(StoreFailure::Unavailable(_)));
    assert!(!sender.is_served() && unserved(sender.send(Get, Duration::MAX).await));

    let taker = takers.taker();
    let other = takers.taker();
    let waiting = begin(&sender, Get).await;
    drop(other);
    yield_now().await;
    assert!(sender.is_served() && !waiting.is_finished());
    drop(taker);
    assert!(unserved(waiting.await.unwrap()));
    assert!(!sender.is_served() && unserved(sender.send(Get, Duration::MAX).await));
}

/// The first request has woken the first one.
#[tokio::test(start_paused = true)]
async fn a_taker_that_leaves_requests_wakes_another_one() {
    let (sender, takers) = queue_of(2);
    let [one, other] = [takers.taker(), takers.taker()].map(|taker| {
        tokio::spawn(async move {
            taker.ready().await;
            (taker.take(1).len(), taker)
        })
    });
    yield_now().await;
    let get = || sender.send(Get, Duration::from_secs(1));
    let batches = async { tokio::join!(get(), get(), one, other) };
    let (_, _, one, other) = timeout(Duration::from_millis(1), batches)
        .await
        .expect("both are woken");
    assert_eq!([one.unwrap().0, other.unwrap().0], [1, 1]);
}

#[tokio::test]
async fn a_taker_waits_for_a_request_and_for_the_end_of_the_sender() {
    let (sender, takers) = queue_of(2);
    let taker = takers.taker();
    let ready = tokio::spawn(async move {
        let is_ready = taker.ready().await;
        let batch = taker.take(2).len();
        (is_ready, batch, taker.ready().await)
    });
    let closed = tokio::spawn(async move { takers.closed().await });
    yield_now().await;
    assert!(!ready.is_finished());
    begin(&sender, Get).await;
    yield_now().await;
    assert!(!ready.is_finished() && !closed.is_finished());
    drop(sender);
    assert_eq!(ready.await.unwrap(), (true, 1, false));
    closed.await.unwrap();
}
