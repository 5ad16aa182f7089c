//! Look-ups that are too many, and such that nobody waits for any more.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use animal_store_adapters_redis::RedisSettings;
use animal_store_app::ports::ApiKeyDirectoryError;
use futures_util::{FutureExt, future::join_all};
use tokio::sync::oneshot;

use crate::{
    keys::{Linked, MARGIN, TIMEOUT, find, patient},
    uses::{Accepted, Failed, Refused, a_moment, ask, comes_to},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ups_beyond_the_bound_are_refused_at_once_and_only_those() {
    let few = RedisSettings { max_look_ups: 3, timeout: TIMEOUT, ..patient() };
    let mut linked = Linked::with(few, |_| ()).await;
    linked.add_and_cache("key", "token").await;
    let directory = &linked.directory;
    linked.link.freeze();

    let mut first = join_all((0..3).map(|number| async move { ask(directory, &format!("token-{number}")).await }));
    assert!((&mut first).now_or_never().is_none());
    for number in 3..100 {
        let outcome = find(directory, &format!("token-{number}")).now_or_never();
        assert!(matches!(outcome, Some(Err(ApiKeyDirectoryError::Overloaded))), "{outcome:?}");
    }
    assert_eq!(ask(directory, "token").now_or_never(), Some(Accepted), "it is in the cache");
    let joined = ask(directory, "token-0");
    assert_eq!(tokio::join!(first, joined), (vec![Failed; 3], Failed));

    linked.link.heal();
    comes_to(&linked.directory, "token-3", Refused).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_up_goes_on_for_others_when_the_one_who_began_it_has_gone() {
    let linked = Linked::with(patient(), |link| link.delay(Duration::from_millis(50))).await;
    linked.keys.add("key", "token").await;
    comes_to(&linked.directory, "earlier", Refused).await;
    let before = linked.look_ups();

    let mut first = Box::pin(find(&linked.directory, "token"));
    assert!((&mut first).now_or_never().is_none());
    let mut second = Box::pin(ask(&linked.directory, "token"));
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    assert_eq!(second.await, Accepted);
    assert_eq!(linked.look_ups(), before + 1);
}

/// A worker of the web server has a runtime of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_up_goes_on_for_others_when_the_runtime_on_which_it_was_begun_has_ended() {
    let Linked { directory, keys, link, server: _server } =
        Linked::with(patient(), |link| link.delay(Duration::from_millis(50))).await;
    keys.add("key", "token").await;
    comes_to(&directory, "earlier", Refused).await;

    let directory = Arc::new(directory);
    let other = Arc::clone(&directory);
    let (begun, has_begun) = oneshot::channel();
    let (joined, has_joined) = mpsc::channel::<()>();
    let worker = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let mut look_up = Box::pin(find(&other, "token"));
        assert!(runtime.block_on(async { (&mut look_up).now_or_never() }).is_none(), "it takes its time");
        begun.send(()).expect("somebody waits");
        has_joined.recv().expect_err("it ends");
    });
    has_begun.await.expect("it begins a look-up");
    let mut second = Box::pin(ask(&directory, "token"));
    assert!((&mut second).now_or_never().is_none());
    drop(joined);
    worker.join().expect("it ends");
    assert_eq!(second.await, Accepted);
    drop(link);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn look_ups_that_nobody_waits_for_any_more_give_their_room_back() {
    let few = RedisSettings { max_look_ups: 3, ..patient() };
    let linked = Linked::with(few, |link| link.delay(Duration::from_millis(50))).await;
    for round in 0..5 {
        let mut given_up = join_all((0..3).map(|number| {
            let directory = &linked.directory;
            async move { find(directory, &format!("token-{round}-{number}")).await }
        }));
        assert!((&mut given_up).now_or_never().is_none());
        drop(given_up);
        let start = Instant::now();
        while matches!(find(&linked.directory, &format!("later-{round}")).await, Err(ApiKeyDirectoryError::Overloaded))
        {
            assert!(start.elapsed() < MARGIN, "they still take up the room");
            a_moment().await;
        }
    }
}
