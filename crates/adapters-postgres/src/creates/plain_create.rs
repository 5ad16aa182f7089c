use animal_store_app::ports::AddedPet;
use animal_store_domain::{NewPet, Pet, PetId};
use tokio_postgres::{Row, types::Type};

use crate::{
    PostgresSettings,
    group_commit::{Answer, Column, Create},
    pet_row::code,
};

/// A create without an idempotency key.
pub(crate) struct PlainCreate(pub(crate) NewPet);

impl Create for PlainCreate {
    const PURPOSE: &'static str = "creates";

    const TYPES: &'static [Type] = &[Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::INT2_ARRAY];

    type Outcome = PetId;

    /// Which id a row was given is told by its position: the order of RETURNING is not promised. Ids ascend with the
    /// positions. What a trigger kept from being stored is left out; what it gave another id has no position.
    fn statement(_: &PostgresSettings) -> String {
        "WITH given AS MATERIALIZED (
            SELECT nextval('pets_id_seq') AS id, name, category_id, status, ordinal
            FROM unnest($1::text[], $2::bigint[], $3::smallint[]) WITH ORDINALITY
                AS given (name, category_id, status, ordinal)
        ), stored AS (
            INSERT INTO pets (id, name, category_id, status)
            SELECT id, name, category_id, status FROM given
            RETURNING id
        )
        SELECT ordinal, id FROM stored LEFT JOIN given USING (id)"
            .to_owned()
    }

    fn columns<'a>(creates: &[&'a Self]) -> Vec<Column<'a>> {
        columns(creates.iter().map(|create| &create.0))
    }

    fn outcome(row: &Row) -> Option<PetId> {
        PetId::parse(row.try_get(1).ok()?).ok()
    }

    fn answer(self, id: PetId) -> Answer {
        Ok(AddedPet { pet: Pet::new(id, self.0), replayed: false })
    }
}

/// Name, category and status.
pub(super) fn columns<'a>(pets: impl Iterator<Item = &'a NewPet> + Clone) -> Vec<Column<'a>> {
    let names: Vec<_> = pets.clone().map(|pet| pet.name().as_str()).collect();
    let categories: Vec<_> = pets.clone().map(|pet| pet.category_id().get()).collect();
    let statuses: Vec<_> = pets.map(|pet| pet.status().map(code)).collect();
    vec![Box::new(names), Box::new(categories), Box::new(statuses)]
}
