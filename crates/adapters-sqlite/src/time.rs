use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last millisecond that RFC 3339 can represent, since 1970.
const LAST: i64 = 253_402_300_799_999;

/// Returns a time as the file keeps it: in milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> i64 {
    whole_milliseconds(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Returns whole milliseconds since 1970, at most the last ones that can be printed.
pub(crate) fn whole_milliseconds(since_1970: Duration) -> i64 {
    i64::try_from(since_1970.as_millis()).map_or(LAST, |milliseconds| milliseconds.min(LAST))
}

/// Returns the time of a number of milliseconds since 1970, at least 1970 and at most the last one that can be printed.
pub(crate) fn from_milliseconds(milliseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(milliseconds.clamp(0, LAST).unsigned_abs())
}
