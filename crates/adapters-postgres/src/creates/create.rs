use animal_store_adapter_kit::queue::Request;
use animal_store_app::ports::{AddedPet, StoreFailure};
use animal_store_domain::{NewPet, Pet, PetId};
use tokio_postgres::Row;

use super::in_flight_keys::InFlightKey;

/// Greatest number of pets in a batch.
pub(super) const MAX_BATCH: usize = 1000;

/// A pet to add.
pub(crate) struct Create {
    pub(super) pet: NewPet,
    pub(super) in_flight: Option<InFlightKey>,
    /// Whether another process had locked the record of the key.
    pub(super) is_retry: bool,
}

pub(crate) enum Response {
    Added(AddedPet),
    /// The key was used for another pet.
    Mismatch,
    /// Another process has locked the record of the key. Nothing was stored.
    Locked,
}

impl Request for Create {
    type Response = Result<Response, StoreFailure>;

    /// A retry is alone in its batch: no other create waits for the record with it.
    fn rows(&self) -> usize {
        if self.is_retry { MAX_BATCH } else { 1 }
    }
}

/// Returns the responses to a batch, from the rows of its statement. `None` if a row is not valid.
pub(super) fn responses(rows: &[Row], creates: &[&Create]) -> Option<Vec<Result<Response, StoreFailure>>> {
    let suppressed = |_| Err(StoreFailure::Unavailable("a trigger suppressed the row".into()));
    let mut responses: Vec<_> = creates.iter().map(suppressed).collect();
    for row in rows {
        let index = usize::try_from(row.try_get::<_, i64>(0).ok()? - 1).ok()?;
        let (id, is_new): (i64, bool) = (row.try_get(1).ok()?, row.try_get(2).ok()?);
        let pet = Pet::new(PetId::parse(id).ok()?, creates.get(index)?.pet.clone());
        let is_same_pet: bool = row.try_get(3).ok()?;
        responses[index] =
            Ok(if is_same_pet { Response::Added(AddedPet { pet, replayed: !is_new }) } else { Response::Mismatch });
    }
    Some(responses)
}
