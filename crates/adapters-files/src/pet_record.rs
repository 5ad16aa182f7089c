use std::{borrow::Cow, fmt::Display};

use animal_store_app::{
    PetsHasher,
    ports::{BulkPet, StoredPet},
};
use animal_store_domain::{CategoryId, CreationTime, NewPet, Pet, PetId, PetName, PetStatus, PetStatusError};

use crate::time;

/// The value of a member of a pet, or its problem.
pub(crate) type Member<T> = Result<T, Cow<'static, str>>;

/// The members of a pet in a line of a file, in every format.
#[derive(Debug)]
pub(crate) struct PetRecord {
    pub(crate) id: Member<PetId>,
    pub(crate) name: Member<PetName>,
    pub(crate) category_id: Member<CategoryId>,
    pub(crate) status: Member<Option<PetStatus>>,
    pub(crate) created_at: Member<Option<CreationTime>>,
}

/// Greatest id that an import accepts. One line with the last id of the storage would end all creates, so 2^32 ids are
/// left for them.
const GREATEST_ID: i64 = i64::MAX - (1 << 32);

/// Problem of a required member that is absent.
pub(crate) const REQUIRED: Cow<'static, str> = Cow::Borrowed("is required");

/// Each parser takes `None` if the member has another type.
pub(crate) fn parse_id(id: Option<i64>) -> Member<PetId> {
    id.and_then(|id| PetId::parse(id).ok()).ok_or(Cow::Borrowed("must be a 64-bit integer of 1 or greater"))
}

fn importable(id: PetId) -> Member<PetId> {
    let problem = || format!("must be at most {GREATEST_ID}: no ids would be left for other pets").into();
    if id.get() <= GREATEST_ID { Ok(id) } else { Err(problem()) }
}

pub(crate) fn parse_name(text: Option<&str>) -> Member<PetName> {
    PetName::parse(text.ok_or("must be a string")?).map_err(to_problem)
}

pub(crate) fn parse_category_id(id: Option<i64>) -> Member<CategoryId> {
    id.map(CategoryId::new).ok_or(Cow::Borrowed("must be a 64-bit integer"))
}

pub(crate) fn parse_status(text: Option<&str>) -> Member<Option<PetStatus>> {
    text.ok_or(PetStatusError).and_then(str::parse).map(Some).map_err(to_problem)
}

pub(crate) fn parse_created_at(text: Option<&str>) -> Member<Option<CreationTime>> {
    let time = text.and_then(time::parse_creation_time);
    time.map(Some).ok_or(Cow::Borrowed("must be a time in UTC such as 2026-11-22T17:00:00.123456Z"))
}

fn to_problem(error: impl Display) -> Cow<'static, str> {
    error.to_string().into()
}

impl PetRecord {
    /// Returns the pet, and adds it to the pets of an export. An id is required with `ids`, and ignored without it.
    ///
    /// # Errors
    /// Every problem, for people.
    pub(crate) fn into_bulk_pet(self, ids: bool, exported: Option<&mut PetsHasher>) -> Result<BulkPet, String> {
        if let Some(exported) = exported
            && let Some(pet) = self.stored_pet()
        {
            exported.add(&pet);
        }
        let Self { id, name, category_id, status, created_at } = self;
        let id = if ids { id.and_then(importable).map(Some) } else { Ok(None) };
        match (id, name, category_id, status, created_at) {
            (Ok(id), Ok(name), Ok(category_id), Ok(status), Ok(created_at)) => {
                Ok(BulkPet { id, pet: NewPet::new(name, category_id).with_status(status), created_at })
            }
            (id, name, category_id, status, created_at) => Err([
                id.err().map(|problem| format!("id {problem}")),
                name.err().map(|problem| format!("name {problem}")),
                category_id.err().map(|problem| format!("categoryId {problem}")),
                status.err().map(|problem| format!("status {problem}")),
                created_at.err().map(|problem| format!("createdAt {problem}")),
            ]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; ")),
        }
    }

    /// Returns the pet with its id and its creation time. `None`: a member is absent or has a problem.
    pub(crate) fn stored_pet(&self) -> Option<StoredPet> {
        let pet = NewPet::new(self.name.clone().ok()?, self.category_id.clone().ok()?);
        let pet = Pet::new(self.id.clone().ok()?, pet.with_status(self.status.clone().ok()?));
        Some(StoredPet { pet, created_at: self.created_at.clone().ok()?? })
    }
}
