use std::net::IpAddr;

use futures_util::FutureExt;
use tokio::{task::spawn_local, time::advance};

use super::*;
use crate::limits::ConnectionLimits;

/// The connections of a worker, and the stage of its server.
pub(crate) struct Worker {
    pub(crate) connections: Rc<Connections>,
    pub(crate) stage: watch::Sender<Stage>,
}

impl Worker {
    pub(crate) fn start(limits: ConnectionLimits) -> Self {
        let (stage, stages) = watch::channel(Stage::Serving);
        let settings = ServerSettings {
            limits,
            ..ServerSettings::default()
        };
        let connections = Connections::new(settings, Arc::default(), stages);
        spawn_local(Rc::clone(&connections).watch());
        Self { connections, stage }
    }
}

fn connections(max_connections: usize) -> Rc<Connections> {
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
    Connections::new(settings, Arc::default(), watch::channel(Stage::Serving).1)
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
        let connections = connections(1);
        let open = connections.admit(None).await;
        open.enter(state);
        let mut admission = Box::pin(connections.admit(None));
        assert!(
            timeout(Duration::from_mins(5), admission.as_mut())
                .await
                .is_err(),
            "{state:?}"
        );
        assert_eq!(open.connection.end.get().is_some(), makes_room, "{state:?}");

        drop(open);
        assert!(admission.now_or_never().is_some(), "{state:?}");
    }
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn if_a_request_keeps_the_oldest_connection_open_the_next_makes_room() {
    let connections = connections(2);
    let oldest = connections.admit(None).await;
    let next = connections.admit(None).await;
    let mut admission = Box::pin(connections.admit(None));

    assert!(admission.as_mut().now_or_never().is_none());
    assert!(oldest.connection.end.get().is_some() && next.connection.end.get().is_none());
    oldest.enter(State::Request);
    assert!(timeout(INTERVAL, admission.as_mut()).await.is_err());
    assert!(oldest.connection.end.get().is_none() && next.connection.end.get().is_some());

    drop(next);
    assert!(admission.now_or_never().is_some());
}

#[tokio::test(flavor = "local")]
async fn a_connection_that_drops_input_makes_room_before_older_ones() {
    let connections = connections(2);
    let idle = connections.admit(None).await;
    let closing = connections.admit(None).await;
    closing.enter(State::Closing);
    assert!(connections.admit(None).now_or_never().is_none());
    assert!(idle.connection.end.get().is_none() && closing.connection.end.get().is_some());
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn beyond_the_maximum_of_held_bytes_the_oldest_connection_that_holds_some_is_closed() {
    let connections = connections(3);
    let [idle, newer, oldest] =
        [(); 3].map(|()| connections.admit(None).now_or_never().expect("room"));
    advance(Duration::from_secs(1)).await;
    newer.enter(State::Response);
    connections.hold(&oldest.connection, 1);
    for (bytes, closed) in [
        (1_048_575, [false, false, false]),
        (1_048_575, [false, false, false]),
        (1_048_576, [false, false, true]),
        (1_048_576, [false, true, true]),
    ] {
        connections.hold(&newer.connection, bytes);
        assert_eq!(
            [&idle, &newer, &oldest].map(|slot| slot.connection.end.get().is_some()),
            closed,
            "{bytes}"
        );
        connections.release(&newer.connection);
    }
}

/// Admits a connection of this client.
async fn admitted(connections: &Rc<Connections>, client: [u8; 4]) -> Slot {
    let peer = SocketAddr::from((client, 40_000));
    connections.admit(Some(peer)).await
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_client_that_acknowledges_nothing_of_its_response_makes_room_after_two_seconds() {
    let worker = Worker::start(ConnectionLimits {
        max_connections: 1,
        ..ConnectionLimits::default()
    });
    let slot = worker.connections.admit(None).await;
    slot.enter(State::Request);
    sleep(Duration::from_mins(1)).await;
    slot.enter(State::Response);

    let start = Instant::now();
    let mut admission = Box::pin(worker.connections.admit(None));
    assert!(admission.as_mut().now_or_never().is_none());
    tokio::select! {
        end = slot.connection.ended() => {
            assert_eq!(end, End::Limit(ConnectionLimit::MaxConnections));
        }
        _ = admission.as_mut() => panic!("the connection is open"),
    }
    // The start and the end of the two seconds are noticed by an interval.
    assert!(
        (1800..=2600).contains(&start.elapsed().as_millis()),
        "{:?}",
        start.elapsed()
    );

    drop(slot);
    assert!(admission.now_or_never().is_some());
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn of_the_address_with_the_most_connections_the_client_without_progress_for_longest_makes_room()
 {
    let proxy = [10, 0, 0, 1];
    let greedy = [192, 0, 2, 1];
    let modest = [192, 0, 2, 2];
    let connections = connections(7);
    let mut slots = Vec::new();
    for client in [modest, proxy, proxy, proxy, greedy, greedy, greedy] {
        let slot = admitted(&connections, client).await;
        slot.enter(State::Response);
        slots.push(slot);
        advance(Duration::from_secs(1)).await;
    }
    // The oldest connection of the greedy address makes progress later than the others.
    advance(Duration::from_secs(10)).await;
    let now = Instant::now();
    slots[4].connection.measure(false, now);
    advance(Duration::from_secs(1)).await;
    slots[5]
        .connection
        .measure(false, Instant::now() - Duration::from_secs(5));

    let mut order = Vec::new();
    for _ in 0..6 {
        connections.make_room();
        let closed = |slot: &Slot| slot.connection.end.get().is_some();
        let Some(index) = slots.iter().position(closed) else {
            break;
        };
        order.push(slots.remove(index).connection.peer.map(|peer| peer.ip()));
    }
    let expected = [greedy, greedy, modest, proxy, proxy, proxy];
    assert_eq!(order, expected.map(|client| Some(client.into())));
    assert_eq!(slots.len(), 1, "a client that made progress a second ago");
}
