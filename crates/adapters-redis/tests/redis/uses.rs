//! The record of uses in Redis. The unit tests of `ApiKeyUseRecord` have its rules.

use std::time::{SystemTime, UNIX_EPOCH};

use animal_store_app::from_milliseconds;

use crate::prelude::*;

const REQUESTS: &str = "shop:v1:uses:request";

/// Notes a request of these keys, and waits until the writer has ended. Returns the numbers of writes and failed
/// writes.
pub(crate) async fn note(keys: &Keys, ids: &[&str]) -> [u64; 2] {
    let mut metrics = Registry::default();
    let (uses, writer_end) = keys.uses(&mut metrics);
    for id in ids {
        uses.note(&api_key_id(id), ApiKeyUse::Request);
    }
    drop(uses);
    writer_end.await.expect("the writer does not panic");
    ["written", "failed"].map(|result| {
        let series = format!("use_writes_total{{result=\"{result}\"}}");
        metric(&metrics, &series)
    })
}

/// The clocks of instances differ.
#[tokio::test]
async fn a_write_moves_no_time_backwards_and_no_beginning() {
    let server = RedisServer::start();
    let keys = Keys::of(&server);
    for id in ["early", "late"] {
        keys.add(id, id).await;
    }
    let in_an_hour = SystemTime::now() + HOUR;
    let since_1970 = in_an_hour.duration_since(UNIX_EPOCH);
    let seconds = since_1970.expect("after 1970").as_secs();
    server.run(&format!("ZADD {REQUESTS} 60 early {seconds} late"));
    server.run("ZADD shop:v1:uses:since 60 beginning");
    assert_eq!(note(&keys, &["early", "late"]).await, [1, 0]);

    let uses = keys.store.list_uses().await.expect("list the uses");
    let last = |id| uses.last(&api_key_id(id), ApiKeyUse::Request);
    assert!(last("early") > Some(in_an_hour - 2 * HOUR));
    assert_eq!(
        last("late"),
        Some(UNIX_EPOCH + Duration::from_secs(seconds))
    );
    assert_eq!(uses.since, Some(UNIX_EPOCH + Duration::from_mins(1)));
}

#[tokio::test]
async fn a_score_that_is_no_date_is_the_first_or_the_last_one() {
    let server = RedisServer::start();
    let keys = Keys::of(&server);
    for id in ["first", "other", "last"] {
        keys.add(id, id).await;
    }
    server.run(&format!("ZADD {REQUESTS} -inf first 60 other +inf last"));

    let uses = keys.store.list_uses().await.expect("list the uses");
    for (id, expected) in [
        ("first", UNIX_EPOCH),
        ("other", UNIX_EPOCH + Duration::from_mins(1)),
        ("last", from_milliseconds(i64::MAX)),
    ] {
        let last = uses.last(&api_key_id(id), ApiKeyUse::Request);
        assert_eq!(last, Some(expected), "{id}");
    }
}

#[tokio::test]
async fn a_write_invalidates_no_cached_key() {
    let proxied = Proxied::new(long_timeouts()).await;
    // Adds a key whose absence is cached: the invalidations that Redis sent before have arrived, too.
    let add = async |id| {
        becomes(&proxied.directory, id, Refused).await;
        proxied.keys.add(id, id).await;
        changes_to(&proxied.directory, id, Accepted).await;
    };
    proxied.keys.add("key", "token").await;
    add("first").await;
    becomes(&proxied.directory, "token", Accepted).await;
    assert_eq!(note(&proxied.keys, &["key"]).await, [1, 0]);

    add("other").await;
    assert_eq!(cached(&proxied.directory, "token"), Some(Accepted));
}
