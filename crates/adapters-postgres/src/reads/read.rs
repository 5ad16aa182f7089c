use animal_store_adapter_kit::queue::Request;
use animal_store_domain::{Pet, PetId, PetStatus};

/// A read of pets.
#[derive(Clone, Copy)]
pub(crate) enum Read {
    /// Reads one pet, or none.
    Get(PetId),
    /// Reads pets of every status.
    List(Page),
    ListByStatus(PetStatus, Page),
}

/// The first pets after a position.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    pub(crate) after: Option<PetId>,
    pub(crate) limit: usize,
}

impl Request for Read {
    type Response = Vec<Pet>;

    fn rows(&self) -> usize {
        match self {
            Self::Get(_) => 1,
            Self::List(page) | Self::ListByStatus(_, page) => page.limit,
        }
    }
}

/// The reads of a batch by their kinds, each in the order of the batch.
#[derive(Default)]
pub(super) struct Kinds {
    pub(super) gets: Vec<PetId>,
    pub(super) lists: Vec<Page>,
    pub(super) lists_by_status: Vec<(PetStatus, Page)>,
}

impl Kinds {
    pub(super) fn of(reads: &[&Read]) -> Self {
        let mut kinds = Self::default();
        for read in reads {
            match read {
                Read::Get(id) => kinds.gets.push(*id),
                Read::List(page) => kinds.lists.push(*page),
                Read::ListByStatus(status, page) => kinds.lists_by_status.push((*status, *page)),
            }
        }
        kinds
    }
}

impl Page {
    /// Ids are greater than this number.
    pub(super) fn after(&self) -> i64 {
        self.after.map_or(0, PetId::get)
    }

    pub(super) fn limit(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(i64::MAX)
    }
}
