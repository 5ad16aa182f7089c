use futures_util::FutureExt;
use tokio::{task::spawn_local, time::advance};

use super::*;

/// The connections of a worker, and the stage of its server.
pub(in crate::transport) struct Worker {
    pub(in crate::transport) connections: Rc<Connections>,
    pub(in crate::transport) stage: watch::Sender<Stage>,
}

impl Worker {
    pub(in crate::transport) fn start(limits: &Limits) -> Self {
        let (stage, stages) = watch::channel(Stage::Serving);
        let connections = Connections::new(limits, Rc::default(), Arc::default(), stages);
        spawn_local(Rc::clone(&connections).watch());
        Self { connections, stage }
    }
}

fn connections(max_connections: usize) -> Rc<Connections> {
    let limits = Limits {
        max_connections,
        max_unsent_bytes: 0,
        ..Limits::default()
    };
    Connections::new(
        &limits,
        Rc::default(),
        Arc::default(),
        watch::channel(Stage::Serving).1,
    )
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
