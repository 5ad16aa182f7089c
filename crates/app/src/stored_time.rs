//! Times as stores keep them: whole milliseconds since 1970, at most the last one that RFC 3339 can represent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const LAST: i64 = 253_402_300_799_999;

/// Returns a time in milliseconds since 1970, rounded down.
pub fn milliseconds(time: SystemTime) -> i64 {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_millis()).map_or(LAST, |milliseconds| milliseconds.min(LAST))
}

/// Returns the time of a number of milliseconds since 1970, at least 1970 and at most the last one that can be printed.
pub fn from_milliseconds(milliseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(milliseconds.clamp(0, LAST).unsigned_abs())
}

/// Returns a time as it is stored: rounded down.
pub(crate) fn stored(time: SystemTime) -> SystemTime {
    from_milliseconds(milliseconds(time))
}

/// Returns the stored time that is this much later than a time.
pub(crate) fn later(time: SystemTime, duration: Duration) -> SystemTime {
    from_milliseconds(time.checked_add(duration).map_or(LAST, milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_time_can_be_printed() {
        for (milliseconds, stored) in [
            (-1, 0),
            (0, 0),
            (LAST, LAST),
            (LAST + 1, LAST),
            (i64::MAX, LAST),
        ] {
            assert_eq!(super::milliseconds(from_milliseconds(milliseconds)), stored);
        }
        for (time, duration, stored) in [
            (UNIX_EPOCH - Duration::from_secs(1), Duration::ZERO, 0),
            (UNIX_EPOCH, Duration::from_micros(1_999), 1),
            (UNIX_EPOCH, Duration::from_secs(1 << 40), LAST),
            (UNIX_EPOCH, Duration::MAX, LAST),
        ] {
            assert_eq!(milliseconds(later(time, duration)), stored);
        }
    }
}
