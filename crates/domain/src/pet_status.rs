use std::str::FromStr;

use thiserror::Error;

/// Availability of a pet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PetStatus {
    /// The pet can be bought.
    Available,
    /// The pet is reserved for a buyer.
    Pending,
    /// The pet was sold.
    Sold,
}

/// The text is not the name of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be one of available, pending, sold")]
pub struct PetStatusError;

impl PetStatus {
    /// All statuses, in the order of the interface.
    pub const ALL: [Self; 3] = [Self::Available, Self::Pending, Self::Sold];

    /// Returns the name that the interface uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Pending => "pending",
            Self::Sold => "sold",
        }
    }

    /// Returns the number in [`NewPet::to_bytes`](crate::NewPet::to_bytes) and in tables: 1 or greater. It must never
    /// change.
    pub const fn number(self) -> i16 {
        self as i16 + 1
    }

    /// Returns the status with this number.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|status| status.number() == number)
    }
}

impl FromStr for PetStatus {
    type Err = PetStatusError;

    fn from_str(name: &str) -> Result<Self, PetStatusError> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == name)
            .ok_or(PetStatusError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_interface() {
        assert_eq!(
            PetStatus::ALL.map(PetStatus::as_str),
            ["available", "pending", "sold"]
        );
        assert_eq!(
            PetStatus::ALL.map(|status| status.as_str().parse()),
            PetStatus::ALL.map(Ok)
        );
    }

    /// They are stored.
    #[test]
    fn the_numbers_never_change() {
        assert_eq!(PetStatus::ALL.map(PetStatus::number), [1, 2, 3]);
        assert_eq!(
            [1, 2, 3].map(PetStatus::from_number),
            PetStatus::ALL.map(Some)
        );
        assert_eq!([0, 4, -1].map(PetStatus::from_number), [None; 3]);
    }

    #[test]
    fn any_other_text_is_refused() {
        for word in ["", "Available", "SOLD", "sold ", "eaten", "null"] {
            assert_eq!(word.parse::<PetStatus>(), Err(PetStatusError), "{word:?}");
        }
    }
}
