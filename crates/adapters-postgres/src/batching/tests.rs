//! Dispatchers without a server: each attempt to connect and each batch ends as the test says. The clock is paused.

mod world;

use std::{future::pending, sync::Mutex, time::Duration};

use animal_store_app::ports::StoreFailure;
use futures_util::FutureExt;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tracing::subscriber::set_default;
use tracing_subscriber::fmt::MakeWriter;

use self::world::*;
use super::watch_over;
use crate::metrics::Count;

#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_batch_and_the_dispatcher_goes_on_with_another_connection() {
    let reads = World::start(Reads, 1, &[]);
    for failures in 1..=2 {
        assert!(is_unavailable(&reads.send(Panic).await));
        assert_eq!(reads.connected(), 0);
        sleep(AFTER_A_PAUSE * 2).await;
        reads.send(Answer).await.unwrap();
        assert_eq!(reads.connected(), 1);
        let counted: i32 = reads.metric("failures_total{reason=\"unavailable\"}");
        assert_eq!(counted, failures);
    }

    let creates = World::start(Creates, 1, &[]);
    let lost = creates.send(Panic).await;
    assert!(
        matches!(lost, Err(StoreFailure::OutcomeUnknown(_))),
        "{lost:?}"
    );
    let counted: i32 = creates.metric("failures_total{reason=\"outcome_unknown\"}");
    assert_eq!(counted, 1);
    sleep(AFTER_A_PAUSE).await;
    creates.send(Answer).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_a_connection_requests_fail_at_once_but_wait_for_the_first_attempt() {
    let world = World::start(Reads, 1, &[Fails, Hangs]);
    let mut first = Box::pin(world.send(Answer));
    assert!((&mut first).now_or_never().is_none());
    assert!(is_unavailable(&first.await), "the first attempt failed");
    // During the pause, and during the next attempt.
    for _ in 0..2 {
        world.fails_at_once();
        sleep(AFTER_A_PAUSE).await;
    }
    assert_eq!(ATTEMPTS_MADE.get(), 2);
    let connections = world.settings.metrics.connections(Reads);
    assert_eq!(connections.unavailable.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn while_one_dispatcher_is_connected_requests_succeed() {
    let world = World::start(Reads, 2, &[Succeeds, Fails, Fails, Fails, Hangs]);
    for _ in 0..20 {
        world.send(Answer).await.unwrap();
        sleep(AFTER_A_PAUSE).await;
    }
    assert_eq!((world.connected(), ATTEMPTS_MADE.get()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn the_next_batch_leaves_on_another_connection_only_if_a_batch_is_slow() {
    let world = World::start(Reads, 2, &[]);
    world.send(Answer).await.unwrap();
    let slow = world.send(Hang);
    let behind = async {
        sleep(A_MOMENT).await;
        let start = Instant::now();
        world.send(Answer).await.unwrap();
        let delay = start.elapsed();
        assert!((A_MOMENT * 3..AFTER_A_PAUSE).contains(&delay), "{delay:?}");
        assert!(world.seconds("queue_wait") >= 0.003);
        for _ in 0..10 {
            world.send(Answer).await.unwrap();
        }
        assert!(
            start.elapsed() < AFTER_A_PAUSE,
            "the other connection is free"
        );
    };
    let (slow, ()) = tokio::join!(slow, behind);
    assert!(matches!(slow, Err(StoreFailure::Timeout)), "{slow:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_client_left_is_not_in_the_smaller_batches() {
    let world = World::start(Reads, 1, &[]);
    let mut asks = [Answer, Spoil, Answer].map(|ask| Box::pin(world.send(ask)));
    assert!(asks.iter_mut().all(|ask| ask.now_or_never().is_none()));
    let [left, spoiling, other] = asks;
    timeout(A_MOMENT / 2, pending::<()>()).await.unwrap_err();
    drop(left);

    let (spoiling, other) = tokio::join!(spoiling, other);
    assert!(is_unavailable(&spoiling));
    other.unwrap();
    let batches: [&[Ask]; 3] = [&[Answer, Spoil, Answer], &[Spoil], &[Answer]];
    assert_eq!(BATCHES.take(), batches);
    // Each request waited once, and each batch is counted.
    for name in ["queue_wait", "batch_duration"] {
        let count: i32 = world.metric(&format!("{name}_seconds_count{{kind=\"read\"}}"));
        assert_eq!(count, 3, "{name}");
    }
    let duration = world.seconds("batch_duration");
    assert!((0.002..0.01).contains(&duration), "{duration}");
}

#[tokio::test(start_paused = true)]
async fn nothing_connects_before_the_schema_is_ready() {
    let world = World::start(Reads, 1, &[]);
    world.schema.send_replace(false);
    for _ in 0..2 {
        sleep(AFTER_A_PAUSE).await;
        world.fails_at_once();
    }
    assert_eq!(ATTEMPTS_MADE.get(), 0);
    world.schema.send_replace(true);
    sleep(AFTER_A_PAUSE).await;
    world.send(Answer).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_ends_with_its_senders_even_while_it_connects() {
    for attempts in [&[Succeeds][..], &[Hangs], &[Fails, Hangs], &[Fails; 9]] {
        let mut world = World::start(Creates, 1, attempts);
        sleep(AFTER_A_PAUSE).await;
        drop(world.sender);
        world.dispatchers.remove(0).await.unwrap();
        let metrics = world.settings.metrics.connections(Creates);
        let counts = [
            &metrics.connecting,
            &metrics.connected,
            &metrics.unavailable,
        ];
        assert_eq!(counts.map(Count::get), [0; 3]);
    }
}

/// The end of a process closes connections.
#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_is_lost_unless_the_sender_is_dropped() {
    static END: Notify = Notify::const_new();
    for (is_dropped, warnings) in [(false, 1), (true, 0)] {
        let log: &Mutex<Vec<u8>> = Box::leak(Box::default());
        let subscriber = tracing_subscriber::fmt().with_writer(move || log.make_writer());
        let _guard = set_default(subscriber.finish());
        let mut world = World::start(Reads, 1, &[Ends(&END), Hangs]);
        world.send(Answer).await.unwrap();
        END.notify_one();
        if is_dropped {
            drop(world.sender);
            world.dispatchers.remove(0).await.unwrap();
        } else {
            sleep(A_MOMENT).await;
        }
        let log = String::from_utf8(log.lock().unwrap().clone()).unwrap();
        assert_eq!(log.matches("was lost").count(), warnings, "{log}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_a_session_refuses_are_executed_again_in_a_new_one_without_a_pause() {
    for purpose in [Reads, Creates] {
        ATTEMPTS_MADE.set(0);
        let world = World::start(purpose, 1, &[]);
        let start = Instant::now();
        let asks = [Answer, Refuse(1), Answer].map(|ask| world.send(ask));
        let responses = futures_util::future::join_all(asks).await;
        assert!(responses.iter().all(Result::is_ok), "{responses:?}");
        assert_eq!(start.elapsed(), Duration::ZERO);
        let batches: [&[Ask]; 2] = [&[Answer, Refuse(1), Answer], &[Refuse(1)]];
        assert_eq!(BATCHES.take(), batches);
        let connected = world.settings.metrics.connections(purpose).connected.get();
        assert_eq!((ATTEMPTS_MADE.get(), connected), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_every_session_reports_costs_a_session_per_second_and_no_other_request() {
    let world = World::start(Reads, 1, &[]);
    let refused = Refuse(usize::MAX);
    for _ in 0..250 {
        let (refused, other) = tokio::join!(world.send(refused), world.send(Answer));
        assert!(is_unavailable(&refused));
        other.unwrap();
        world.send(Answer).await.unwrap();
        sleep(A_MOMENT * 5).await;
    }
    // The first one, and after each pause another one that reports the same.
    assert_eq!((ATTEMPTS_MADE.get(), world.connected()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_session_refused_fails_if_no_new_one_can_be_opened() {
    let world = World::start(Creates, 1, &[Succeeds, Fails]);
    let refused = world.send(Refuse(1)).await;
    assert!(is_unavailable(&refused), "{refused:?}");
    sleep(AFTER_A_PAUSE).await;
    world.send(Answer).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn if_a_dispatcher_panics_the_writer_of_the_process_ends() {
    for attempts in [&[Panics][..], &[Fails, Panics], &[Succeeds, Panics]] {
        let reads = World::start(Reads, 2, attempts);
        let mut writer = watch_over(vec![tokio::spawn(pending())], &reads.settings);
        timeout(TIMEOUT, &mut writer).await.unwrap().unwrap();
    }
    let creates = World::start(Creates, 1, &[]);
    let mut writer = watch_over(creates.dispatchers, &creates.settings);
    creates.sender.send(Panic, TIMEOUT).await.unwrap_err();
    assert!((&mut writer).now_or_never().is_none(), "a batch may panic");
    drop(creates.sender);
    writer.await.unwrap();
}
