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
    pub(super) gets: Vec<i64>,
    pub(super) lists: Lists,
    pub(super) lists_by_status: Lists,
}

/// The lists of a kind, as the parameters of a statement.
#[derive(Default)]
pub(super) struct Lists {
    /// Empty if the lists have no status.
    pub(super) statuses: Vec<i16>,
    /// The ids of a list are greater than this number.
    pub(super) after: Vec<i64>,
    pub(super) limits: Vec<i64>,
}

impl Kinds {
    pub(super) fn of(reads: &[&Read]) -> Self {
        let mut kinds = Self::default();
        for read in reads {
            match read {
                Read::Get(id) => kinds.gets.push(id.get()),
                Read::List(page) => kinds.lists.push(*page),
                Read::ListByStatus(status, page) => {
                    kinds.lists_by_status.statuses.push(status.number());
                    kinds.lists_by_status.push(*page);
                }
            }
        }
        kinds
    }
}

impl Lists {
    pub(super) fn len(&self) -> usize {
        self.limits.len()
    }

    fn push(&mut self, page: Page) {
        let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
        self.after.push(page.after.map_or(0, PetId::get));
        self.limits.push(limit);
    }
}
