//! Times in files: RFC 3339 in UTC, with microseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use animal_store_domain::CreationTime;
use humantime::Rfc3339Timestamp;

/// Formats a time from 1970 to 9999.
pub(crate) fn format(time: SystemTime) -> Rfc3339Timestamp {
    humantime::format_rfc3339_micros(time)
}

pub(crate) fn format_creation_time(time: CreationTime) -> Rfc3339Timestamp {
    format(UNIX_EPOCH + Duration::from_micros(time.micros().unsigned_abs()))
}

/// Parses a time from 1970 to 9999. It drops digits after the microseconds.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let since = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(UNIX_EPOCH + Duration::from_micros(u64::try_from(since.as_micros()).ok()?))
}

pub(crate) fn parse_creation_time(text: &str) -> Option<CreationTime> {
    let since = parse(text)?.duration_since(UNIX_EPOCH).ok()?;
    CreationTime::parse(i64::try_from(since.as_micros()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_is_written_in_utc_with_microseconds() {
        let time = CreationTime::parse(1_795_366_800_123_456).unwrap();
        assert_eq!(format_creation_time(time).to_string(), "2026-11-22T17:00:00.123456Z");
    }

    #[test]
    fn a_time_may_have_another_precision() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:01.5Z", 1_500_000),
            ("1970-01-01T00:00:00.123456789Z", 123_456),
            ("1970-01-01T00:00:01+00:00", 1_000_000),
        ] {
            assert_eq!(parse_creation_time(text).map(CreationTime::micros), Some(micros), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_time_in_utc_is_refused() {
        for text in ["", "0", "2026-11-22", "2026-11-22T17:00:00", "2026-11-22T17:00:00+01:00", "1969-12-31T23:59:59Z"]
        {
            assert_eq!(parse_creation_time(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_creation_time_survives(micros in 0..=253_402_300_799_999_999_i64) {
            let time = CreationTime::parse(micros).unwrap();
            prop_assert_eq!(parse_creation_time(&format_creation_time(time).to_string()), Some(time));
        }

        #[test]
        fn no_text_causes_a_panic(text in "\\PC{0,40}") {
            let _ = parse_creation_time(&text);
        }
    }
}
