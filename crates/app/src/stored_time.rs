//! Times as stores keep them: whole milliseconds since 1970, at most the last one that RFC 3339 can represent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const LAST: i64 = 253_402_300_799_999;

/// Returns a time in milliseconds since 1970.
pub fn milliseconds(time: SystemTime) -> i64 {
    i64::try_from(since_1970(time).as_millis()).map_or(LAST, |milliseconds| milliseconds.min(LAST))
}

/// Returns the time of a number of milliseconds since 1970, at least 1970 and at most the last one that can be printed.
pub fn from_milliseconds(milliseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(milliseconds.clamp(0, LAST).unsigned_abs())
}

pub(crate) fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Rounds down to a millisecond.
pub(crate) fn from_since_1970(since_1970: Duration) -> SystemTime {
    from_milliseconds(i64::try_from(since_1970.as_millis()).unwrap_or(LAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_time_can_be_printed() {
        for (milliseconds, stored) in [(-1, 0), (0, 0), (LAST, LAST), (LAST + 1, LAST), (i64::MAX, LAST)] {
            assert_eq!(super::milliseconds(from_milliseconds(milliseconds)), stored);
        }
        assert_eq!(milliseconds(from_since_1970(Duration::MAX)), LAST);
        assert_eq!(milliseconds(UNIX_EPOCH - Duration::from_secs(1)), 0);
    }
}
