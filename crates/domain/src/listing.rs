use thiserror::Error;

use crate::{Pet, PetId, PetStatus};

/// How many animals a page may hold: [`PageLimit::MIN`] to [`PageLimit::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit(u8);

/// A number no page may have as its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be a whole number from {} to {}", PageLimit::MIN, PageLimit::MAX)]
pub struct PageLimitError;

impl PageLimit {
    /// The least limit.
    pub const MIN: u8 = 1;
    /// The greatest limit.
    pub const MAX: u8 = 100;

    /// Takes a number within the bounds.
    ///
    /// # Errors
    /// [`PageLimitError`] outside of them.
    pub const fn new(limit: u8) -> Result<Self, PageLimitError> {
        if limit < Self::MIN || limit > Self::MAX { Err(PageLimitError) } else { Ok(Self(limit)) }
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// 20, as the interface says.
impl Default for PageLimit {
    fn default() -> Self {
        Self(20)
    }
}

/// What a client asks of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// The most animals on the page.
    pub limit: PageLimit,
    /// Only animals of this status; every animal, those without a status included, where it is absent.
    pub status: Option<PetStatus>,
    /// Only animals whose id is greater; from the first where it is absent.
    pub after: Option<PetId>,
}

/// One page of a list, in ascending order of id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The animals, at most as many as the limit.
    pub pets: Vec<Pet>,
    /// Where the next page begins; absent when no animal follows.
    pub next: Option<PetId>,
}

impl Page {
    /// Cuts a page out of animals in ascending order. One animal more than the limit is enough to tell that others
    /// follow.
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
        let new = NewPet::new(PetName::parse("Rex").unwrap(), CategoryId::new(1), None);
        (1..=count).map(|id| Pet::new(PetId::new(id).unwrap(), new.clone())).collect()
    }

    #[test]
    fn a_limit_is_1_to_100_and_20_by_default() {
        assert_eq!(PageLimit::new(0), Err(PageLimitError));
        assert_eq!(PageLimit::new(1).map(PageLimit::get), Ok(1));
        assert_eq!(PageLimit::new(100).map(PageLimit::get), Ok(100));
        assert_eq!(PageLimit::new(101), Err(PageLimitError));
        assert_eq!(PageLimit::default().get(), 20);
    }

    #[test]
    fn a_page_without_followers_has_no_next() {
        for count in 0..=3 {
            let page = Page::cut(pets(count), PageLimit::new(3).unwrap());
            assert_eq!(page, Page { pets: pets(count), next: None });
        }
    }

    #[test]
    fn a_page_with_followers_ends_at_the_limit_and_names_its_last_animal() {
        let page = Page::cut(pets(4), PageLimit::new(3).unwrap());
        assert_eq!(page, Page { pets: pets(3), next: PetId::new(3).ok() });
    }
}
