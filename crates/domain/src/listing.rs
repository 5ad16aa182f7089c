use thiserror::Error;

use crate::{Pet, PetId, PetStatus};

/// Maximum number of pets on a page: [`PageLimit::MIN`] to [`PageLimit::MAX`], 20 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit(u8);

/// The number is not a valid page limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be a whole number from {} to {}", PageLimit::MIN, PageLimit::MAX)]
pub struct PageLimitError;

impl PageLimit {
    /// Smallest valid limit.
    pub const MIN: u8 = 1;
    /// Largest valid limit.
    pub const MAX: u8 = 100;

    /// Parses a limit.
    ///
    /// # Errors
    /// [`PageLimitError`] if the number is out of range.
    pub const fn parse(limit: u8) -> Result<Self, PageLimitError> {
        if limit < Self::MIN || limit > Self::MAX {
            Err(PageLimitError)
        } else {
            Ok(Self(limit))
        }
    }

    /// Returns the number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// 20, the default of the interface.
impl Default for PageLimit {
    fn default() -> Self {
        Self(20)
    }
}

/// Parameters of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Maximum number of pets on the page.
    pub limit: PageLimit,
    /// Filter by status. `None` selects all pets, including those without a status.
    pub status: Option<PetStatus>,
    /// Position: only pets with a greater id. `None` starts at the first pet.
    pub after: Option<PetId>,
}

/// One page of a list, in ascending order of id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The pets, at most as many as the limit.
    pub pets: Vec<Pet>,
    /// Position of the next page, or `None` if no pet follows.
    pub next: Option<PetId>,
}

impl Page {
    /// Cuts a page out of pets in ascending order of id. A pet beyond the limit shows that another page follows.
    pub fn cut(mut pets: Vec<Pet>, limit: PageLimit) -> Self {
        let more = pets.len() > usize::from(limit.get());
        pets.truncate(limit.get().into());
        let next = if more { pets.last().map(Pet::id) } else { None };
        Self { pets, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CategoryId, NewPet, PetName};

    fn pets(count: i64) -> Vec<Pet> {
        let new = NewPet::new(PetName::parse("Rex").unwrap(), CategoryId::new(1));
        (1..=count)
            .map(|id| Pet::new(PetId::parse(id).unwrap(), new.clone()))
            .collect()
    }

    #[test]
    fn a_limit_is_1_to_100_and_20_by_default() {
        assert_eq!(PageLimit::parse(0), Err(PageLimitError));
        assert_eq!(PageLimit::parse(1).map(PageLimit::get), Ok(1));
        assert_eq!(PageLimit::parse(100).map(PageLimit::get), Ok(100));
        assert_eq!(PageLimit::parse(101), Err(PageLimitError));
        assert_eq!(PageLimit::default().get(), 20);
    }

    #[test]
    fn the_last_page_has_no_next() {
        for count in 0..=3 {
            let page = Page::cut(pets(count), PageLimit::parse(3).unwrap());
            assert_eq!(
                page,
                Page {
                    pets: pets(count),
                    next: None
                }
            );
        }
    }

    #[test]
    fn a_page_before_another_ends_at_the_limit_and_returns_its_last_id_as_next() {
        let page = Page::cut(pets(4), PageLimit::parse(3).unwrap());
        assert_eq!(
            page,
            Page {
                pets: pets(3),
                next: PetId::parse(3).ok()
            }
        );
    }
}
