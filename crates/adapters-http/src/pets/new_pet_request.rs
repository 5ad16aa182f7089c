//! The body of `createPet`: each member is parsed once, by the rules of the domain.
//!
//! serde stops at the first error. Therefore a [`Member`] holds either a value or a problem, and `validator`
//! collects the problems of all members, so that one response names each of them.

#[cfg(test)]
mod tests;

use std::fmt;

use animal_store_domain::{CategoryId, NewPet, PetName, PetStatus, PetStatusError};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use validator::{Validate, ValidationError, ValidationErrors};

use super::{json_integer, member::Member};
use crate::error::Problems;

/// Parses a request body, or another text of the same shape. `subject` names it in problems.
pub(super) fn parse(json: &[u8], subject: &str) -> Result<NewPet, Problems> {
    let invalid = |problem: &str| Problems::one(format!("{subject} must be {problem}"));
    let text = str::from_utf8(json).map_err(|_| invalid("JSON in UTF-8"))?;
    let request: NewPetRequest = serde_json::from_str(text)
        .map_err(|error| invalid(if error.is_data() { "a JSON object" } else { "valid JSON" }))?;
    request.validate().map_err(|errors| problems(&errors))?;
    let new_pet = NewPet::new(request.name.into_value(), request.category_id.into_value());
    Ok(new_pet.with_status(request.status.into_value()))
}

#[derive(Validate)]
struct NewPetRequest {
    #[validate(custom(function = "check"))]
    name: Member<PetName>,
    #[validate(custom(function = "check"))]
    category_id: Member<CategoryId>,
    #[validate(custom(function = "check"))]
    status: Member<Option<PetStatus>>,
}

/// Fields of [`NewPetRequest`] and the members of the interface, in its order.
const MEMBERS: [(&str, &str); 3] = [("name", "name"), ("category_id", "categoryId"), ("status", "status")];

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum MemberName {
    Name,
    CategoryId,
    Status,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for NewPetRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NewPetVisitor)
    }
}

struct NewPetVisitor;

impl<'de> Visitor<'de> for NewPetVisitor {
    type Value = NewPetRequest;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NewPetRequest, A::Error> {
        let (mut name, mut category_id, mut status) = (Member::required(), Member::required(), Member::optional());
        while let Some(member) = map.next_key()? {
            match member {
                MemberName::Name => name.set(parse_name(map.next_value()?)),
                MemberName::CategoryId => category_id.set(parse_category_id(map.next_value()?)),
                MemberName::Status => status.set(parse_status(map.next_value()?)),
                MemberName::Unknown => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(NewPetRequest { name, category_id, status })
    }
}

fn parse_name(json: &RawValue) -> Result<PetName, String> {
    let text = parse_string(json).ok_or("must be a string")?;
    PetName::parse(&text).map_err(|error| error.to_string())
}

fn parse_category_id(json: &RawValue) -> Result<CategoryId, &'static str> {
    json_integer::parse(json.get()).map(CategoryId::new).ok_or("must be a 64-bit integer")
}

fn parse_status(json: &RawValue) -> Result<Option<PetStatus>, PetStatusError> {
    parse_string(json).ok_or(PetStatusError)?.parse().map(Some)
}

fn parse_string(json: &RawValue) -> Option<String> {
    serde_json::from_str(json.get()).ok()
}

fn check<T>(member: &Member<T>) -> Result<(), ValidationError> {
    match member.problem() {
        None => Ok(()),
        Some(problem) => Err(ValidationError::new("invalid").with_message(problem.clone())),
    }
}

fn problems(errors: &ValidationErrors) -> Problems {
    let fields = errors.field_errors();
    let mut problems = Problems::default();
    for (field, member) in MEMBERS {
        for error in fields.get(field).copied().into_iter().flatten() {
            problems.push(member, error.message.as_deref().unwrap_or("is invalid"));
        }
    }
    problems
}

/// `validator` copies the refused value into its error. Nothing reads the copy, so it is empty.
impl<T> Serialize for Member<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}
