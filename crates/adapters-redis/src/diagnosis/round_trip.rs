use std::time::{Duration, Instant};

use animal_store_app::Finding;
use redis::cmd;

use super::Inspected;
use crate::connection::Connection;

const MAX_PINGS: usize = 20;
const MIN_PINGS: usize = 3;
/// Time after which no further `PING` is sent, once the minimum is reached.
const MAX_TIME: Duration = Duration::from_secs(1);

/// Measures round trips. A session ends if a `PING` takes longer than half a lease.
pub(super) async fn inspect(mut connection: Connection, lease: Duration) -> Inspected {
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < MIN_PINGS || times.len() < MAX_PINGS && start.elapsed() < MAX_TIME {
        let sent = Instant::now();
        cmd("PING").exec_async(&mut connection).await?;
        times.push(sent.elapsed());
    }
    times.sort_unstable();
    Ok(vec![judge(&times, lease / 2)])
}

/// `times` is sorted and not empty.
fn judge(times: &[Duration], limit: Duration) -> Finding {
    let subject = "redis.round_trip";
    let (median, max) = (times[times.len() / 2], times[times.len() - 1]);
    let found = format!(
        "median {median:.1?}, maximum {max:.1?} of {} PINGs; half of keys.redis.lease is {limit:?}",
        times.len()
    );
    if median >= limit {
        let found = format!("{found}: requests get 503");
        return Finding::error(subject, found, "move Redis closer to the instance, or raise keys.redis.lease");
    }
    if max > limit / 2 {
        let advice = "check the load of Redis and the network, or raise keys.redis.lease: a slower PING ends the \
                      session, and requests get 503";
        return Finding::warning(subject, found, advice);
    }
    Finding::ok(subject, found)
}

#[cfg(test)]
mod tests {
    use animal_store_app::Verdict::{Error, Ok, Warning};

    use super::*;

    #[test]
    fn round_trips_are_compared_with_half_of_the_lease() {
        for (milliseconds, verdict) in [
            (&[1, 2, 150][..], Ok),
            (&[1, 2, 151], Warning),
            (&[1, 299, 800], Warning),
            (&[1, 300, 300], Error),
            (&[1, 1, 300, 300, 300], Error),
        ] {
            let times: Vec<_> = milliseconds.iter().copied().map(Duration::from_millis).collect();
            assert_eq!(judge(&times, Duration::from_millis(300)).verdict, verdict, "{milliseconds:?}");
        }
    }
}
