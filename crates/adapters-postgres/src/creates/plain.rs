//! A create without an idempotency key.

use animal_store_app::ports::AddedPet;
use animal_store_domain::{NewPet, Pet, PetId};
use tokio_postgres::{Row, types::Type};

use super::add_request::{AddRequest, AddResult};
use crate::{
    PostgresSettings,
    pet_row::{Array, COLUMNS, arrays},
    unnest::{column_names, unnest},
};

pub(super) struct PlainAdd {
    pub(super) pet: NewPet,
}

impl AddRequest for PlainAdd {
    const PURPOSE: &'static str = "creates";

    type Stored = PetId;

    fn columns() -> Vec<(&'static str, Type)> {
        COLUMNS.to_vec()
    }

    /// Ids ascend with the positions. The id of a request is found by its position, because the order of RETURNING is
    /// not guaranteed. A row that a trigger suppressed is missing; a row whose id a trigger changed has no position.
    fn statement(_: &PostgresSettings) -> String {
        let (pet, given) = (column_names(&COLUMNS), unnest(&Self::columns()));
        format!(
            "WITH given AS MATERIALIZED (
                SELECT nextval('pets_id_seq') AS id, given.* FROM {given}
            ), stored AS (
                INSERT INTO pets (id, {pet}) SELECT id, {pet} FROM given
                RETURNING id
            )
            SELECT ordinal, id FROM stored LEFT JOIN given USING (id)"
        )
    }

    fn arrays<'a>(requests: &[&'a Self]) -> Vec<Array<'a>> {
        arrays(requests.iter().map(|request| &request.pet))
    }

    fn stored(row: &Row) -> Option<PetId> {
        PetId::parse(row.try_get(1).ok()?).ok()
    }

    fn added(self, id: PetId) -> AddResult {
        Ok(AddedPet { pet: Pet::new(id, self.pet), replayed: false })
    }
}
