use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_app::Finding;

use super::inspection::{Inspected, Inspection};

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Idempotency keys expire by the clock of PostgreSQL, and logs are compared by their times.
const MAX_DIFFERENCE: Duration = Duration::from_secs(1);

/// Number of readings. The one with the shortest round trip is the most exact.
const READINGS: usize = 3;

/// The time of the server, in microseconds since 1970, between two times of this machine.
#[derive(Clone, Copy)]
struct ClockReading {
    sent: i64,
    server: i64,
    received: i64,
}

pub(super) async fn inspect(inspection: &Inspection) -> Inspected {
    let mut readings = Vec::new();
    for _ in 0..READINGS {
        let sent = now();
        let row = inspection.row(NOW).await?;
        readings.push(ClockReading { sent, server: row.try_get(0)?, received: now() });
    }
    Ok(readings.into_iter().min_by_key(|reading| reading.received - reading.sent).map(judge).into_iter().collect())
}

fn judge(ClockReading { sent, server, received }: ClockReading) -> Finding {
    let subject = "postgres.clock";
    let behind = Duration::from_micros(u64::try_from(sent - server).unwrap_or_default());
    let ahead = Duration::from_micros(u64::try_from(server - received).unwrap_or_default());
    if behind.max(ahead) < MAX_DIFFERENCE {
        let bound = Duration::from_micros((server - sent).unsigned_abs().max((received - server).unsigned_abs()));
        return Finding::ok(subject, format!("the clocks differ by at most {bound:.1?}"));
    }
    let (difference, direction) = if ahead.is_zero() { (behind, "behind") } else { (ahead, "ahead of") };
    let found = format!("the clock of PostgreSQL is {difference:.1?} {direction} the clock of this machine");
    Finding::warning(subject, found, "synchronise the clocks of both machines, for example with chrony")
}

/// Returns microseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sent: i64, server: i64, received: i64) -> String {
        judge(ClockReading { sent, server, received }).found
    }

    #[test]
    fn a_slow_response_is_not_a_difference_of_the_clocks() {
        assert_eq!(found(0, 2_000_000, 5_000_000), "the clocks differ by at most 3.0s");
        assert_eq!(found(1_000, 900, 1_300), "the clocks differ by at most 400.0µs");
    }

    #[test]
    fn a_certain_difference_of_a_second_is_found() {
        assert_eq!(
            found(5_000_000, 2_500_000, 5_000_100),
            "the clock of PostgreSQL is 2.5s behind the clock of this machine"
        );
        assert_eq!(found(0, 1_000_100, 100), "the clock of PostgreSQL is 1.0s ahead of the clock of this machine");
    }
}
