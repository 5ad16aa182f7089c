use std::collections::HashMap;

use animal_store_app::ports::StoreFailure;
use animal_store_domain::{Pet, PetId};
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures_util::future::try_join_all;

use super::{query, read::Read};
use crate::pet_row::PetRow;

/// Reads one pet.
pub(super) struct Get(pub(super) PetId);

impl Read for Get {
    type Response = Option<Pet>;

    fn rows(&self) -> usize {
        1
    }

    /// Gets of the same pet are in different statements: each one is executed.
    async fn load(
        gets: &[&Self],
        mut connection: &AsyncPgConnection,
    ) -> QueryResult<Vec<Result<Option<Pet>, StoreFailure>>> {
        let mut statements: Vec<HashMap<_, _>> = Vec::new();
        for (position, get) in gets.iter().enumerate() {
            let id = get.0.get();
            match statements.iter_mut().find(|positions| !positions.contains_key(&id)) {
                Some(positions) => drop(positions.insert(id, position)),
                None => statements.push(HashMap::from([(id, position)])),
            }
        }
        let ids = statements.iter().map(|positions| positions.keys().copied().collect());
        let loading = ids.map(|ids| query::gets(ids).load::<PetRow>(&mut connection));
        let mut pets: Vec<_> = gets.iter().map(|_| Ok(None)).collect();
        for (rows, positions) in try_join_all(loading).await?.into_iter().zip(statements) {
            for row in rows {
                if let Some(&position) = positions.get(&row.id()) {
                    pets[position] = Pet::try_from(row).map(Some);
                }
            }
        }
        Ok(pets)
    }
}
