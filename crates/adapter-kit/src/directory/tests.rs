mod world;

use std::io;

use animal_store_app::test_support::failures::{TIMED_OUT, UNAVAILABLE, assert_fails};
use tokio::{task::yield_now, time::advance};

use self::world::*;
use super::*;

#[tokio::test(start_paused = true)]
async fn only_the_changed_keys_are_replaced() {
    let test = Test::start();
    let first = [key("a", &[1, 2]), key("b", &[3])];
    test.read(1, first).await;
    advance(INTERVAL).await;
    // A token may move to another key, and a key may be revoked.
    let second = [key("c", &[2]), key("a", &[1]), key("b", &[])];
    test.read(2, second).await;
    let ids = [test.id(1).await, test.id(2).await, test.id(3).await];
    assert_eq!(ids, [Some("a".into()), Some("c".into()), None]);
    advance(INTERVAL).await;
    test.check(Ok(None)).await;
    advance(INTERVAL).await;
    test.read(1, [key("d", &[3])]).await;
    let ids = [test.id(1).await, test.id(3).await];
    assert_eq!(ids, [None, Some("d".into())]);
    let known = [None, Some(1), Some(2), Some(2)];
    assert_eq!(*test.known.lock().unwrap(), known);
}

/// Without those of the first read. A restart of the store changes no key, and another store has other keys.
#[tokio::test(start_paused = true)]
async fn differences_are_logged_once_for_each_key() {
    let (reader, guard) = log();
    let test = Test::start();
    let first = [key("a", &[1]), key("b", &[2]), ending("e", 5, NOW)];
    test.read(1, first).await;
    advance(INTERVAL).await;
    let invalid = || invalid("c", &[3, 4]);
    // A key may be added and revoked between two checks.
    let changed = [key("b", &[]), invalid(), key("x", &[])];
    test.read(2, changed).await;
    advance(INTERVAL).await;
    // A token that expired may be gone.
    test.read(1, [key("a", &[1]), invalid()]).await;
    advance(INTERVAL).await;
    test.read(1, [invalid(), key("d", &[1])]).await;
    drop(guard);
    let log = io::read_to_string(reader).unwrap();
    let line = |id: &str, tokens: u8| {
        format!(
            r#" INFO audit: API key change seen api_key="{id}" api_key_label="label of {id}" scopes="read,write" tokens={tokens}"#
        )
    };
    let unreadable = r#" INFO audit: API key change seen api_key="c" api_key_label="unreadable" scopes="" tokens=2"#;
    let expected = [
        line("b", 0),
        unreadable.to_owned(),
        line("d", 1),
        line("a", 0),
    ];
    assert_eq!(log.lines().collect::<Vec<_>>(), expected);
}

/// The log of all of them would take longer than the keys are trusted.
#[tokio::test(start_paused = true)]
async fn of_very_many_differences_the_last_ones_are_counted() {
    let (reader, guard) = log();
    let log = std::thread::spawn(|| io::read_to_string(reader).unwrap());
    for count in [LOGGED, LOGGED + 2] {
        let keys: Vec<_> = (0..count).map(|n| key(&n.to_string(), &[1])).collect();
        let differences = keys.iter().map(|key| Difference { key, tokens: 1 });
        log_differences(&differences.collect::<Vec<_>>());
    }
    drop(guard);
    let log = log.join().unwrap();
    assert_eq!(log.lines().count(), 2 * LOGGED + 1);
    let last = "further API key changes seen records=2\n";
    assert!(log.ends_with(last), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_lookup_trusts_no_check_that_began_too_long_ago() {
    let test = Test::start();
    yield_now().await;
    // The check takes a while.
    advance(Duration::from_millis(60)).await;
    test.read(1, [key("a", &[1])]).await;
    advance(Duration::from_millis(39)).await;
    assert_eq!(test.id(1).await.as_deref(), Some("a"));
    advance(Duration::from_millis(1)).await;
    assert_fails(test.find(1).await, TIMED_OUT);
    let failures = "keys_lookup_failures_total{reason=\"timeout\"}";
    assert_eq!(test.metric(failures), 1);
    Readiness::check(&*test.directory).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_check_lookups_fail_as_soon_as_the_trust_ends_and_until_one_succeeds() {
    let test = Test::start();
    test.read(1, [key("a", &[1])]).await;
    advance(INTERVAL).await;
    test.check(Err("no such table".to_owned())).await;
    assert_eq!(test.id(1).await.as_deref(), Some("a"));
    advance(INTERVAL).await;
    let cause = assert_fails(test.find(1).await, UNAVAILABLE);
    assert_eq!(cause, "no such table");
    test.check(Ok(None)).await;
    assert_eq!(test.id(1).await.as_deref(), Some("a"));
}

/// The clock of this machine shows another year. The store may have read its clock as soon as it was asked.
#[tokio::test(start_paused = true)]
async fn a_token_expires_by_the_clock_of_the_store_and_early_rather_than_late() {
    let test = Test::start();
    yield_now().await;
    advance(INTERVAL / 2).await;
    test.read(1, [ending("a", 1, NOW + INTERVAL)]).await;
    advance(INTERVAL * 4 / 10).await;
    assert_eq!(test.id(1).await.as_deref(), Some("a"));
    advance(INTERVAL / 10).await;
    assert_eq!(test.id(1).await, None);
}

#[tokio::test(start_paused = true)]
async fn without_lookups_nothing_is_checked_and_the_next_lookup_waits_for_one_check() {
    let test = Test::start();
    let first = delta(1, [key("a", &[1])]);
    test.send(Ok(Some(first)));
    sleep(Duration::from_hours(1)).await;
    assert_eq!(test.begun(), 1);
    let lookup = test.lookup();
    sleep(INTERVAL).await;
    assert!(test.begun() == 2 && !lookup.is_finished());
    // The key was revoked in this hour.
    let second = delta(2, [key("a", &[])]);
    test.send(Ok(Some(second)));
    assert_eq!(lookup.await.unwrap(), None);
    sleep(Duration::from_hours(1)).await;
    assert_eq!(test.begun(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_first_check_after_a_time_without_lookups_is_repeated_if_it_fails() {
    let test = Test::start();
    let failed = "the connection ended".to_owned();
    let first = delta(1, [key("a", &[1])]);
    test.send(Ok(Some(first)));
    sleep(INTERVAL * 2).await;
    test.send(Err(failed));
    test.send(Ok(None));
    assert_eq!(test.id(1).await.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_lookup_asks_again_after_a_check_that_took_longer_than_the_trust() {
    let test = Test::start();
    let lookup = test.lookup();
    sleep(Source::TRUST).await;
    let first = delta(1, [key("a", &[1])]);
    test.send(Ok(Some(first)));
    sleep(INTERVAL).await;
    assert!(!lookup.is_finished());
    test.send(Ok(None));
    assert!(lookup.await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_checks_end_when_the_directory_is_dropped() {
    for result in [Ok(None), Err("refused".to_owned())] {
        let test = Test::start();
        test.check(result).await;
        drop(test.directory);
        let ended = timeout_at(Instant::now() + INTERVAL, test.task).await;
        ended.expect("no further check").expect("no panic");
    }
}

/// Without pauses, instances would open connections to a store that restarts as fast as they can.
#[tokio::test(start_paused = true)]
async fn pauses_between_failed_checks_grow_and_are_short_again_after_a_success() {
    let test = Test::start();
    for _ in 0..40 {
        test.send(Err("refused".to_owned()));
    }
    sleep(Duration::from_secs(10)).await;
    let checks = test.begun();
    assert!((14..=28).contains(&checks), "{checks} in ten seconds");
    sleep(Duration::from_mins(1)).await;
    test.check(Ok(None)).await;
    sleep(INTERVAL).await;
    let before = test.begun();
    test.check(Err("refused".to_owned())).await;
    sleep(Duration::from_millis(21)).await;
    assert_eq!(test.begun(), before + 1);
}
