use thiserror::Error;

/// Identifier that the service assigns to a pet on creation: 1 to `i64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PetId(i64);

/// The integer is not a valid pet id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a pet id must be 1 or greater")]
pub struct PetIdError;

impl PetId {
    /// Parses an id.
    ///
    /// # Errors
    /// [`PetIdError`] if the integer is 0 or negative.
    pub const fn parse(id: i64) -> Result<Self, PetIdError> {
        if id < 1 {
            Err(PetIdError)
        } else {
            Ok(Self(id))
        }
    }

    /// Returns the integer, 1 or greater.
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// Identifier of the category that a pet belongs to: any 64-bit integer. Another service owns the category record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CategoryId(i64);

impl CategoryId {
    /// Wraps any 64-bit integer.
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// Returns the integer.
    pub const fn get(self) -> i64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_or_greater() {
        assert_eq!(PetId::parse(1).map(PetId::get), Ok(1));
        assert_eq!(PetId::parse(i64::MAX).map(PetId::get), Ok(i64::MAX));
        for refused in [0, -1, i64::MIN] {
            assert_eq!(PetId::parse(refused), Err(PetIdError));
        }
    }
}
