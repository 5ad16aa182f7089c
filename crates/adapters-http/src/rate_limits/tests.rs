use std::{net::Ipv4Addr, pin::pin};

use animal_store_app::test_support::api_key_id;
use futures_util::FutureExt;
use tokio::time::advance;

use super::*;

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("not 0")
}

fn of_keys(per_second: u32, burst: u32) -> KeyRateLimiter {
    KeyRateLimiter::new(RateLimit {
        per_second: number(per_second),
        burst: number(burst),
    })
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn begin<'a>(limiter: &'a AuthFailureLimiter, client: &str) -> Attempt<'a> {
    let begun = limiter.try_begin(address(client)).expect("a token");
    begun.expect("a token that no attempt has")
}

/// Returns the seconds after which a request from this address would be admitted.
fn wait(limiter: &AuthFailureLimiter, client: &str) -> Option<u64> {
    match limiter.try_begin(address(client)) {
        Ok(Some(_)) => None,
        Err(ApiError::TooManyAuthFailures(seconds)) => Some(seconds),
        other => panic!("{other:?}"),
    }
}

fn fail(limiter: &AuthFailureLimiter, client: &str) {
    begin(limiter, client).fail();
}

#[tokio::test(start_paused = true)]
async fn a_key_has_its_burst_and_then_its_rate() {
    let limiter = of_keys(2, 3);
    let [key, other] = ["key", "other"].map(api_key_id);

    let left: Vec<_> = (0..5).map(|_| limiter.take(&key)).collect();
    assert_eq!(left, [Some(2), Some(1), Some(0), None, None]);
    assert_eq!(limiter.take(&other), Some(2));

    advance(Duration::from_millis(499)).await;
    assert_eq!(limiter.take(&key), None);
    advance(Duration::from_millis(1)).await;
    assert_eq!((limiter.take(&key), limiter.take(&key)), (Some(0), None));
    advance(Duration::from_hours(1)).await;
    assert_eq!(limiter.take(&key), Some(2));
}

/// `t` of `RateLimit` is always 1.
#[tokio::test(start_paused = true)]
async fn a_key_is_admitted_again_within_a_second_and_its_burst_in_each_window_of_the_policy() {
    for (per_second, burst, window) in [
        (1, 1, 1),
        (1, 1000, 1000),
        (3, 7, 3),
        (7, 3, 1),
        (100, 101, 2),
        (1_000_000, 1000, 1),
    ] {
        let limiter = of_keys(per_second, burst);
        let key = api_key_id("key");
        for _window in 0..3 {
            let admitted = (0..burst).filter_map(|_| limiter.take(&key));
            assert_eq!(admitted.last(), Some(0), "{per_second} {burst}");
            assert_eq!(limiter.take(&key), None, "{per_second} {burst}");
            advance(Duration::from_secs(window)).await;
        }
        for _ in 0..burst {
            limiter.take(&key);
        }
        advance(Duration::from_secs(1)).await;
        assert!(limiter.take(&key).is_some(), "{per_second} {burst}");

        for (left, r) in [(Some(7), 7), (None, 0)] {
            let mut headers = HeaderMap::new();
            limiter.add_fields(&mut headers, left);
            let policy = format!(r#""default";q={burst};w={window}"#);
            assert_eq!(headers.get(RATE_LIMIT_POLICY).unwrap(), &policy);
            let quota = format!(r#""default";r={r};t=1"#);
            assert_eq!(headers.get(RATE_LIMIT).unwrap(), &quota);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_is_refused_after_its_failures_until_one_no_longer_counts() {
    let limiter = AuthFailureLimiter::new(number(7));
    let client = "192.0.2.1";

    for _ in 0..7 {
        assert_eq!(wait(&limiter, client), None);
        fail(&limiter, client);
    }
    // A seventh of a minute: 8.57 s.
    assert_eq!(wait(&limiter, client), Some(9));
    advance(Duration::from_millis(7600)).await;
    assert_eq!(wait(&limiter, client), Some(1));
    advance(Duration::from_secs(1)).await;
    assert_eq!(wait(&limiter, client), None);
    fail(&limiter, client);
    assert_eq!(wait(&limiter, client), Some(9));

    advance(Duration::from_mins(1)).await;
    (0..6).for_each(|_| fail(&limiter, client));
    assert_eq!(wait(&limiter, client), None);
}

#[tokio::test(start_paused = true)]
async fn a_network_of_64_bits_counts_as_one_ipv6_address() {
    let limiter = AuthFailureLimiter::new(NonZeroU32::MIN);
    fail(&limiter, "2001:db8:0:1::1");
    fail(&limiter, "192.0.2.1");

    for refused in [
        "2001:db8:0:1::1",
        "2001:db8:0:1:ffff:ffff:ffff:ffff",
        "192.0.2.1",
    ] {
        assert_eq!(wait(&limiter, refused), Some(60), "{refused}");
    }
    for other in ["2001:db8::1", "2001:db8:0:2::1", "192.0.2.2", "::1"] {
        assert_eq!(wait(&limiter, other), None, "{other}");
    }
    let kept = lock(&limiter.failures.full_at).len();
    assert_eq!(kept, 2, "an attempt without a failure is not kept");
}

#[tokio::test(start_paused = true)]
async fn the_number_of_addresses_is_bounded_and_a_new_one_is_limited_at_the_maximum() {
    let limiter = AuthFailureLimiter::new(NonZeroU32::MIN);
    let refused = "198.51.100.1";
    fail(&limiter, refused);

    for address in 0..u32::try_from(MAX_NETWORKS).expect("a small number") * 3 {
        let client = Ipv4Addr::from_bits(address).to_string();
        fail(&limiter, &client);
        assert_eq!(wait(&limiter, &client), Some(60), "{client}");
        assert!(lock(&limiter.failures.full_at).len() <= MAX_NETWORKS);
        // An address that continues to send requests stays refused.
        assert_eq!(wait(&limiter, refused), Some(60), "after {client}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_has_as_many_attempts_under_way_as_tokens_and_further_ones_wait_for_these() {
    let limiter = AuthFailureLimiter::new(number(2));
    let client = "192.0.2.1";
    let first = begin(&limiter, client);
    let second = begin(&limiter, client);
    let mut third = pin!(limiter.begin(address(client)));
    let mut fourth = pin!(limiter.begin(address(client)));
    assert!(third.as_mut().now_or_never().is_none());
    assert!(fourth.as_mut().now_or_never().is_none());
    assert_eq!(wait(&limiter, "192.0.2.2"), None);

    // A success returns its token, a failure does not.
    drop(first);
    let third = third.now_or_never().expect("a token").expect("a token");
    second.fail();
    assert!(fourth.as_mut().now_or_never().is_none());
    third.fail();
    let refused = fourth
        .now_or_never()
        .expect("an end")
        .expect_err("no token");
    assert!(matches!(refused, ApiError::TooManyAuthFailures(30)));
    assert!(lock(&limiter.under_way).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_gets_no_token_in_time_is_refused_as_an_overload() {
    let limiter = AuthFailureLimiter::new(NonZeroU32::MIN);
    let client = "192.0.2.1";
    let _stalled = begin(&limiter, client);
    let refused = limiter.begin(address(client)).await.expect_err("no token");
    assert!(matches!(
        refused,
        ApiError::Overloaded(ExceededLimit::AuthFailures)
    ));
}
