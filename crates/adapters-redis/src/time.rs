use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second that RFC 3339 can represent.
pub(crate) const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

/// Returns a time to the second, at the latest the last one that can be printed.
pub(crate) fn date(since_1970: Duration) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(since_1970.min(LAST_SECOND).as_secs())
}
