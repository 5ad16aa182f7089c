use animal_store_app::test_support::failures::{OVERLOADED, TIMED_OUT, UNKNOWN, assert_fails};
use prometheus_client::registry::Registry;
use tokio::{
    task::{JoinHandle, yield_now},
    time::timeout,
};

use super::*;

/// A request with this number of rows.
struct List {
    rows: usize,
    is_alone: bool,
}

impl Request for List {
    type Response = ();

    fn rows(&self) -> usize {
        self.rows
    }

    fn is_alone(&self) -> bool {
        self.is_alone
    }
}

/// Has one row.
const GET: List = list(1);

const fn list(rows: usize) -> List {
    List {
        rows,
        is_alone: false,
    }
}

/// A queue with room for two requests.
fn queue_of_two() -> (Arc<Sender<List>>, Takers<List>) {
    queue_with(2, None)
}

fn queue_with(
    capacity: usize,
    outcome_timeout: Option<Duration>,
) -> (Arc<Sender<List>>, Takers<List>) {
    let [metrics] = QueueMetrics::register(&mut Registry::default(), ["read"]);
    let (sender, takers) = queue(capacity, outcome_timeout, metrics);
    (Arc::new(sender), takers)
}

type Response = JoinHandle<Result<(), StoreFailure>>;

/// Puts a request into the queue.
async fn begin(sender: &Arc<Sender<List>>, request: List) -> Response {
    let sender = Arc::clone(sender);
    let response = tokio::spawn(async move { sender.send(request, Duration::from_secs(1)).await });
    yield_now().await;
    response
}

#[tokio::test]
async fn a_batch_has_as_many_rows_as_fit_and_at_least_one_request_or_one_that_shares_no_batch() {
    let alone = || List {
        is_alone: true,
        ..GET
    };
    for (requests, max_rows, batches) in [
        (vec![list(5), GET, GET, GET], 2, &[1, 2, 1, 0][..]),
        (vec![GET, GET, GET], 2, &[2, 1, 0]),
        (vec![GET, alone(), alone(), GET, GET], 9, &[1, 1, 1, 2, 0]),
    ] {
        let (sender, takers) = queue_with(10, None);
        let taker = takers.taker();
        for request in requests {
            begin(&sender, request).await;
        }
        for size in batches {
            assert_eq!(taker.take(max_rows).len(), *size, "{batches:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_and_a_request_whose_time_has_passed_makes_room() {
    let (sender, takers) = queue_of_two();
    let taker = takers.taker();
    let first = begin(&sender, GET).await;
    let second = begin(&sender, GET).await;
    let refused = sender.send(GET, Duration::from_secs(1)).await;
    assert_fails(refused, OVERLOADED);
    for response in [first, second] {
        assert_fails(response.await.unwrap(), TIMED_OUT);
    }
    let third = begin(&sender, GET).await;
    for pending in taker.take(2) {
        pending.respond(taker.metrics(), |_| Ok(()));
    }
    assert!(third.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_request_whose_client_is_gone_is_not_taken() {
    let (sender, takers) = queue_of_two();
    let taker = takers.taker();
    begin(&sender, GET).await.abort();
    yield_now().await;
    assert!(taker.take(2).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_taken_waits_longer_for_its_outcome() {
    let (sender, takers) = queue_with(2, Some(Duration::from_secs(2)));
    let taker = takers.taker();
    let begun = Instant::now();
    let unanswered = begin(&sender, GET).await;
    let _taken = taker.take(1);
    assert_fails(unanswered.await.unwrap(), UNKNOWN);
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
    let late = begin(&sender, GET).await.await.unwrap();
    assert_fails(late, TIMED_OUT);
}

#[tokio::test]
async fn without_a_taker_requests_fail_at_once() {
    let (sender, takers) = queue_of_two();
    let unserved = |response| matches!(response, Err(StoreFailure::Unavailable(_)));
    assert!(!sender.is_served() && unserved(sender.send(GET, Duration::MAX).await));

    let taker = takers.taker();
    let other = takers.taker();
    let waiting = begin(&sender, GET).await;
    drop(other);
    yield_now().await;
    assert!(sender.is_served() && !waiting.is_finished());
    drop(taker);
    assert!(unserved(waiting.await.unwrap()));
    assert!(!sender.is_served() && unserved(sender.send(GET, Duration::MAX).await));
}

/// The first request has woken the first one.
#[tokio::test(start_paused = true)]
async fn a_taker_that_leaves_requests_wakes_another_one() {
    let (sender, takers) = queue_of_two();
    let [one, other] = [takers.taker(), takers.taker()].map(|taker| {
        tokio::spawn(async move {
            taker.ready().await;
            (taker.take(1).len(), taker)
        })
    });
    yield_now().await;
    let get = || sender.send(GET, Duration::from_secs(1));
    let batches = async { tokio::join!(get(), get(), one, other) };
    let (_, _, one, other) = timeout(Duration::from_millis(1), batches)
        .await
        .expect("both are woken");
    assert_eq!([one.unwrap().0, other.unwrap().0], [1, 1]);
}

#[tokio::test]
async fn a_taker_waits_for_a_request_and_for_the_end_of_the_sender() {
    let (sender, takers) = queue_of_two();
    let taker = takers.taker();
    let ready = tokio::spawn(async move {
        let is_ready = taker.ready().await;
        let batch = taker.take(2).len();
        (is_ready, batch, taker.ready().await)
    });
    let closed = tokio::spawn(async move { takers.closed().await });
    yield_now().await;
    assert!(!ready.is_finished());
    begin(&sender, GET).await;
    yield_now().await;
    assert!(!ready.is_finished() && !closed.is_finished());
    drop(sender);
    assert_eq!(ready.await.unwrap(), (true, 1, false));
    closed.await.unwrap();
}
