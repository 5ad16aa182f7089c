use animal_store_domain::{Pet, PetStatus};
use serde::{Serialize, Serializer};

/// Size of most pets.
pub(super) const USUAL_BYTES: usize = 128;

/// The schema Pet of the interface. A pet without a status has no `status` member.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PetResponse<'a> {
    id: i64,
    name: &'a str,
    category_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

impl<'a> From<&'a Pet> for PetResponse<'a> {
    fn from(pet: &'a Pet) -> Self {
        let new_pet = pet.new_pet();
        Self {
            id: pet.id().get(),
            name: new_pet.name().as_str(),
            category_id: new_pet.category_id().get(),
            status: new_pet.status().map(PetStatus::as_str),
        }
    }
}

/// The pets of a page.
pub(super) struct PetResponses<'a>(pub(super) &'a [Pet]);

impl Serialize for PetResponses<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(PetResponse::from))
    }
}
