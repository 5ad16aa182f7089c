use std::{net::IpAddr, ops::Range};

use futures_util::FutureExt;
use tokio::{runtime::Handle, task::spawn_local, time::advance};

use super::*;
use crate::limits::ConnectionLimits;

/// Asserts that this time has passed since `start`.
#[track_caller]
pub(crate) fn assert_elapsed(start: Instant, expected: Range<Duration>) {
    let elapsed = start.elapsed();
    assert!(expected.contains(&elapsed), "{elapsed:?}");
}

/// The connections of a worker, and the stage of its server.
pub(crate) struct Worker {
    pub(crate) pool: Rc<Pool>,
    pub(crate) stage: watch::Sender<Stage>,
}

impl Worker {
    pub(crate) fn start(limits: ConnectionLimits) -> Self {
        let (stage, stages) = watch::channel(Stage::Serving);
        let settings = ServerSettings {
            limits,
            ..ServerSettings::default()
        };
        let pool = Pool::new(settings, Arc::default(), stages);
        spawn_local(Rc::clone(&pool).watch());
        Self { pool, stage }
    }
}

fn pool(max_connections: usize) -> Rc<Pool> {
    let limits = ConnectionLimits {
        max_connections,
        max_unsent_bytes: 0,
        ..ConnectionLimits::default()
    };
    let settings = ServerSettings {
        limits,
        share_of: Arc::new(|client| (client != IpAddr::from([10, 0, 0, 1])).then_some(client)),
        ..ServerSettings::default()
    };
    Pool::new(settings, Arc::default(), watch::channel(Stage::Serving).1)
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn only_a_connection_without_a_complete_request_makes_room_and_the_next_waits_for_its_end() {
    for (state, makes_room) in [
        (State::Handshake, true),
        (State::Idle, true),
        (State::Head, true),
        (State::Body, true),
        (State::Request, false),
        (State::Closing, true),
    ] {
        let pool = pool(1);
        let open = pool.admit(None).await;
        open.enter(state);
        let mut admission = Box::pin(pool.admit(None));
        assert!(
            timeout(Duration::from_mins(5), admission.as_mut())
                .await
                .is_err(),
            "{state:?}"
        );
        assert_eq!(open.end().is_some(), makes_room, "{state:?}");

        drop(open);
        assert!(admission.now_or_never().is_some(), "{state:?}");
    }
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_connection_that_drops_input_makes_room_first_and_then_the_oldest_without_a_request() {
    for (older, newer, makes_room) in [
        (State::Idle, State::Closing, [false, true]),
        (State::Idle, State::Head, [true, false]),
        (State::Body, State::Handshake, [true, false]),
        (State::Request, State::Idle, [false, true]),
    ] {
        let pool = pool(2);
        let slots = [pool.admit(None).await, pool.admit(None).await];
        slots[0].enter(older);
        advance(Duration::from_secs(1)).await;
        slots[1].enter(newer);

        pool.make_room();
        let ends = slots.each_ref().map(|slot| slot.end().is_some());
        assert_eq!(ends, makes_room, "{older:?} {newer:?}");
        // A request has arrived meanwhile.
        for slot in slots {
            slot.enter(State::Request);
            assert!(slot.end().is_none());
        }
    }
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn if_a_request_arrives_on_the_connection_that_makes_room_the_next_one_makes_it_at_once() {
    let pool = pool(2);
    let [older, newer] = [(); 2].map(|()| pool.admit(None).now_or_never().expect("room"));
    advance(Duration::from_secs(1)).await;
    newer.enter(State::Head);
    let mut admission = Box::pin(pool.admit(None));
    assert!((&mut admission).now_or_never().is_none());
    assert!(older.end().is_some());

    older.enter(State::Request);
    assert!((&mut admission).now_or_never().is_none());
    assert!(newer.end().is_some());
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn beyond_the_maximum_of_held_bytes_the_oldest_connection_that_holds_some_is_closed() {
    let pool = pool(3);
    let [idle, newer, oldest] = [(); 3].map(|()| pool.admit(None).now_or_never().expect("room"));
    advance(Duration::from_secs(1)).await;
    newer.enter(State::Response);
    oldest.hold(1);
    for (bytes, closed) in [
        (1_048_575, [false, false, false]),
        (1_048_575, [false, false, false]),
        (1_048_576, [false, false, true]),
        (1_048_576, [false, true, true]),
    ] {
        newer.hold(bytes);
        assert_eq!(
            [&idle, &newer, &oldest].map(|slot| slot.end().is_some()),
            closed,
            "{bytes}"
        );
        newer.release();
        assert_eq!(pool.held_bytes.get(), 1, "those of the oldest");
    }
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn of_the_address_with_the_most_connections_the_client_without_progress_for_longest_makes_room()
 {
    let proxy = [10, 0, 0, 1];
    let greedy = [192, 0, 2, 1];
    let modest = [192, 0, 2, 2];
    let pool = pool(7);
    let mut slots = Vec::new();
    for client in [modest, proxy, proxy, proxy, greedy, greedy, greedy] {
        let slot = pool.admit(Some((client, 40_000).into())).await;
        slot.enter(State::Response);
        slots.push(slot);
        advance(Duration::from_secs(1)).await;
    }
    // The oldest connection of the greedy address makes progress later than the others.
    advance(Duration::from_secs(10)).await;
    let now = Instant::now();
    slots[4].measure(false, now);
    advance(Duration::from_secs(1)).await;
    slots[5]
        .connection
        .measure(false, Instant::now() - Duration::from_secs(5));

    let mut order = Vec::new();
    for _ in 0..6 {
        pool.make_room();
        let closed = |slot: &Slot| slot.end().is_some();
        let Some(index) = slots.iter().position(closed) else {
            break;
        };
        order.push(slots.remove(index).peer().map(|peer| peer.ip()));
    }
    let expected = [greedy, greedy, modest, proxy, proxy, proxy];
    assert_eq!(order, expected.map(|client| Some(client.into())));
    assert_eq!(slots.len(), 1, "a client that made progress a second ago");
}

#[tokio::test(flavor = "local")]
async fn a_peer_with_ipv4_in_ipv6_form_has_its_ipv4_address() {
    let pool = pool(10);
    for (peer, client) in [
        ("[::ffff:192.0.2.9]:80", "192.0.2.9"),
        ("192.0.2.9:80", "192.0.2.9"),
        ("[2001:db8::9]:80", "2001:db8::9"),
    ] {
        let slot = pool.admit(Some(peer.parse().expect("an address"))).await;
        let client = client.parse().expect("an address");
        assert_eq!(slot.peer().map(|peer| peer.ip()), Some(client), "{peer}");
    }
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_worker_without_connections_checks_nothing_and_the_next_connection_has_its_timeouts() {
    let worker = Worker::start(ConnectionLimits::default());
    let slot = worker.pool.admit(None).await;
    drop(worker.pool.codec());
    drop(slot);
    sleep(Duration::from_secs(1)).await;
    let parks = || Handle::current().metrics().worker_park_count(0);
    let before = parks();

    sleep(Duration::from_hours(1)).await;
    let parks = parks() - before;
    assert!(
        parks < 20,
        "{parks}: the thread wakes up for a long sleep a few times"
    );

    let slot = worker.pool.admit(None).await;
    slot.enter(State::Idle);
    assert_eq!(slot.ended().await, End::Timeout);
}
