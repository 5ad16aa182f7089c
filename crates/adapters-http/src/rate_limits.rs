//! Limits on the requests of an API key and on the failed authentications of a client address (ADR 0028).
//!
//! **Problem.** One client can send more requests than its share, or try tokens until one is valid.
//!
//! **Invariant.** In each interval, over all workers, an API key has at most its burst and its rate times the interval.
//! An address that has failed too often gets 429 before its key is looked up, and as many of its lookups are under way
//! as it has failures left. The numbers of API keys and of addresses that are kept are bounded. A limit that is not
//! configured costs a load without a lock. A limit that is replaced begins without a state.
//!
//! **Proof.** The unit tests, also those of `live` and `authenticate`; `tests/http/guesses.rs`;
//! `server/tests/api/rate_limits.rs` over sockets.

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    net::IpAddr,
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use animal_store_app::ApiKeyId;
use quick_cache::unsync::Cache;
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::error::{ApiError, ExceededLimit};

pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(crate) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Maximum number of API keys. A key is replaced only if that many others have sent requests more recently.
const MAX_KEYS: usize = 100_000;

/// Maximum number of networks. They take about 1 MB.
const MAX_NETWORKS: usize = 10_000;

/// Timeout for a token of an address. The lookups that have the tokens have timeouts of their own.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// Token buckets, one for each client, without timers (GCRA).
#[derive(Debug)]
struct Buckets<K> {
    /// Time in which one token returns.
    interval: Duration,
    /// Time in which an empty bucket becomes full.
    fill_time: Duration,
    /// When each bucket is full. At its maximum, a new client replaces one without recent requests. That client starts
    /// again with a full bucket, and no client is refused because of others.
    full_at: Mutex<Cache<K, Instant>>,
}

impl<K: Clone + Eq + Hash> Buckets<K> {
    fn new(interval: Duration, tokens: NonZeroU32, max_clients: usize) -> Self {
        Self {
            interval,
            fill_time: interval * tokens.get(),
            full_at: Mutex::new(Cache::new(max_clients)),
        }
    }

    /// Takes a token, and returns the number of those that are left. `None`: there was none.
    fn take(&self, client: &K) -> Option<u32> {
        let mut full_at = lock(&self.full_at);
        let now = Instant::now();
        let before = full_at.get(client).map_or(now, |at| now.max(*at));
        let after = before + self.interval;
        let rest = (now + self.fill_time).checked_duration_since(after)?;
        full_at.insert(client.clone(), after);
        let tokens = rest.as_nanos() / self.interval.as_nanos();
        u32::try_from(tokens).ok()
    }

    /// Puts back a token that was taken. A full bucket is not kept.
    fn put_back(&self, client: &K) {
        let mut full_at = lock(&self.full_at);
        let Some(before) = full_at.get(client).map(|at| *at - self.interval) else {
            return;
        };
        if before > Instant::now() {
            full_at.insert(client.clone(), before);
        } else {
            full_at.remove(client);
        }
    }

    /// Returns the time until there is a token.
    fn wait(&self, client: &K) -> Duration {
        let Some(full_at) = lock(&self.full_at).get(client).copied() else {
            return Duration::ZERO;
        };
        let has_token = full_at + self.interval;
        has_token.saturating_duration_since(Instant::now() + self.fill_time)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum rate of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per second, after the burst.
    pub per_second: NonZeroU32,
    /// Requests at once, after a pause of `burst / per_second` seconds.
    pub burst: NonZeroU32,
}

/// Limits the rate of the requests of each API key, and reports the quota that is left
/// (draft-ietf-httpapi-ratelimit-headers-11).
#[derive(Debug)]
pub(crate) struct KeyRateLimiter {
    pub(crate) limit: RateLimit,
    buckets: Buckets<ApiKeyId>,
    /// Value of `RateLimit-Policy`.
    policy: HeaderValue,
}

impl KeyRateLimiter {
    /// Creates a limiter, in which each key has its burst.
    pub(crate) fn new(limit: RateLimit) -> Self {
        let RateLimit { per_second, burst } = limit;
        // A client that sends at most `q` requests in each `w` seconds is never refused.
        let window = burst.get().div_ceil(per_second.get());
        let policy = format!(r#""default";q={burst};w={window}"#);
        Self {
            limit,
            buckets: Buckets::new(Duration::from_secs(1) / per_second.get(), burst, MAX_KEYS),
            policy: HeaderValue::try_from(policy).expect("ASCII"),
        }
    }

    /// Takes one request from the quota of the key, and returns the number of requests that are left. `None`: the quota
    /// is used up. It has a request again within a second.
    pub(crate) fn take(&self, key: &ApiKeyId) -> Option<u32> {
        self.buckets.take(key)
    }

    /// Adds the fields for clients to a response. A rate of at least one per second means that the quota grows within
    /// a second: `t` is never greater, and equals the `Retry-After` of a 429.
    pub(crate) fn add_fields(&self, headers: &mut HeaderMap, left: Option<u32>) {
        let left = left.unwrap_or(0);
        headers.insert(RATE_LIMIT_POLICY, self.policy.clone());
        headers.insert(
            RATE_LIMIT,
            HeaderValue::try_from(format!(r#""default";r={left};t=1"#)).expect("ASCII"),
        );
    }
}

/// Limits the failed authentications of each client address, so that tokens cannot be tried in large numbers. An
/// address is an IPv4 address or an IPv6 network of 64 bits: a client chooses the other bits of its address. All
/// clients of a proxy that is not trusted count as one address.
#[derive(Debug)]
pub(crate) struct AuthFailureLimiter {
    pub(crate) per_minute: NonZeroU32,
    /// The tokens are the failures that are left.
    failures: Buckets<IpAddr>,
    /// Number of attempts under way, by address. Each has taken a token.
    under_way: Mutex<HashMap<IpAddr, usize>>,
    /// Notified at the end of an attempt.
    ended: Notify,
}

impl AuthFailureLimiter {
    /// Creates a limiter, in which no address has failed.
    pub(crate) fn new(per_minute: NonZeroU32) -> Self {
        let interval = Duration::from_mins(1) / per_minute.get();
        Self {
            per_minute,
            failures: Buckets::new(interval, per_minute, MAX_NETWORKS),
            under_way: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// Begins an attempt to authenticate. Rejects it if the address has failed too often. `None`: attempts that are
    /// under way have the last tokens.
    pub(crate) fn try_begin(&self, client: IpAddr) -> Result<Option<Attempt<'_>>, ApiError> {
        let client = network(client);
        let mut under_way = lock(&self.under_way);
        if self.failures.take(&client).is_some() {
            *under_way.entry(client).or_default() += 1;
            return Ok(Some(Attempt {
                limiter: self,
                client,
                has_failed: false,
            }));
        }
        if under_way.contains_key(&client) {
            return Ok(None);
        }
        let wait = self.failures.wait(&client);
        // In whole seconds, rounded up: a client that waits for this time is admitted.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Err(ApiError::TooManyAuthFailures(seconds.max(1)))
    }

    /// Begins an attempt as soon as an attempt that is under way leaves its token.
    pub(crate) async fn begin(&self, client: IpAddr) -> Result<Attempt<'_>, ApiError> {
        let begin = async {
            loop {
                let ended = self.ended.notified();
                if let Some(attempt) = self.try_begin(client)? {
                    return Ok(attempt);
                }
                ended.await;
            }
        };
        match timeout(ATTEMPT_TIMEOUT, begin).await {
            Ok(attempt) => attempt,
            Err(_) => Err(ApiError::Overloaded(ExceededLimit::AuthFailures)),
        }
    }
}

/// An authentication of an address. Its end returns the token, unless the authentication has failed.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    limiter: &'a AuthFailureLimiter,
    client: IpAddr,
    has_failed: bool,
}

impl Attempt<'_> {
    /// Ends the attempt with a failure.
    pub(crate) fn fail(mut self) {
        self.has_failed = true;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut under_way = lock(&self.limiter.under_way);
        if !self.has_failed {
            self.limiter.failures.put_back(&self.client);
        }
        if let Entry::Occupied(mut count) = under_way.entry(self.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        self.limiter.ended.notify_waiters();
    }
}

/// Returns what counts as one address: an IPv4 address, or an IPv6 network of 64 bits.
pub(crate) fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
    }
}
