use thiserror::Error;

/// When a pet was created: microseconds since 1970-01-01T00:00:00Z, up to the end of the year 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CreationTime(i64);

/// The number is not a valid creation time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a creation time must be in the years 1970 to 9999")]
pub struct CreationTimeError;

impl CreationTime {
    /// The last microsecond of the year 9999.
    const MAX: i64 = 253_402_300_799_999_999;

    /// Parses a number of microseconds since 1970.
    ///
    /// # Errors
    /// [`CreationTimeError`] if the time is before 1970 or after 9999.
    pub const fn parse(micros: i64) -> Result<Self, CreationTimeError> {
        if micros < 0 || micros > Self::MAX {
            Err(CreationTimeError)
        } else {
            Ok(Self(micros))
        }
    }

    /// Returns the microseconds since 1970.
    pub const fn micros(self) -> i64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_creation_time_is_in_the_years_1970_to_9999() {
        for micros in [0, CreationTime::MAX] {
            assert_eq!(
                CreationTime::parse(micros).map(CreationTime::micros),
                Ok(micros)
            );
        }
        for refused in [-1, CreationTime::MAX + 1] {
            assert_eq!(CreationTime::parse(refused), Err(CreationTimeError));
        }
    }
}
