use thiserror::Error;

/// The identifier the service gives an animal when it is created: 1 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PetId(i64);

/// Why an integer identifies no animal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an animal's id is 1 or more")]
pub struct PetIdError;

impl PetId {
    /// Takes an integer from 1 on.
    ///
    /// # Errors
    /// [`PetIdError`] for 0 and below.
    pub const fn new(id: i64) -> Result<Self, PetIdError> {
        if id < 1 { Err(PetIdError) } else { Ok(Self(id)) }
    }

    /// The integer, 1 or more.
    pub const fn get(self) -> i64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_or_more() {
        assert_eq!(PetId::new(1).map(PetId::get), Ok(1));
        assert_eq!(PetId::new(i64::MAX).map(PetId::get), Ok(i64::MAX));
        for refused in [0, -1, i64::MIN] {
            assert_eq!(PetId::new(refused), Err(PetIdError));
        }
    }
}
