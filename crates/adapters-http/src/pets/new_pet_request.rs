//! `NewPet`, as clients send it: read leniently, then checked by the domain's own rules.
//!
//! serde stops at its first mistake. So each member is first taken as it comes ([`Member`]), whatever it holds; then
//! the functions that `validator` calls parse each one, and one answer names every member that is wrong.

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

use super::json_integer;
use crate::error::{ApiError, Problems};

/// The animal that the body describes.
pub(super) fn parse(body: &[u8]) -> Result<NewPet, ApiError> {
    let invalid = |problem: &str| ApiError::InvalidBody(Problems::one(problem));
    let text = std::str::from_utf8(body).map_err(|_| invalid("the request body must be JSON in UTF-8"))?;
    let request: NewPetRequest = serde_json::from_str(text).map_err(|error| {
        invalid(if error.is_data() {
            "the request body must be a JSON object"
        } else {
            "the request body must be valid JSON"
        })
    })?;
    request.validate().map_err(|errors| ApiError::InvalidBody(problems(&errors)))?;
    request.new_pet().map_err(|problem| invalid(&problem))
}

#[derive(Validate)]
struct NewPetRequest<'a> {
    #[validate(custom(function = "check_name"))]
    name: Member<'a>,
    #[validate(custom(function = "check_category_id"))]
    category_id: Member<'a>,
    #[validate(custom(function = "check_status"))]
    status: Member<'a>,
}

/// A member of the object, as the client wrote it.
#[derive(Clone, Copy)]
enum Member<'a> {
    Absent,
    Given(&'a RawValue),
    GivenTwice,
}

impl NewPetRequest<'_> {
    fn new_pet(&self) -> Result<NewPet, String> {
        Ok(NewPet::new(name(self.name)?, category_id(self.category_id)?).with_status(status(self.status)?))
    }
}

fn name(member: Member<'_>) -> Result<PetName, String> {
    let text = string(member.required()?).ok_or("must be a string")?;
    PetName::parse(&text).map_err(|error| error.to_string())
}

fn category_id(member: Member<'_>) -> Result<CategoryId, String> {
    let number = json_integer::parse(member.required()?.get()).ok_or("must be a 64-bit integer")?;
    Ok(CategoryId::new(number))
}

fn status(member: Member<'_>) -> Result<Option<PetStatus>, String> {
    let Some(value) = member.optional()? else { return Ok(None) };
    let status = string(value).and_then(|text| text.parse().ok());
    status.map(Some).ok_or_else(|| PetStatusError.to_string())
}

fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

impl<'a> Member<'a> {
    fn optional(self) -> Result<Option<&'a RawValue>, &'static str> {
        match self {
            Self::Absent => Ok(None),
            Self::Given(value) => Ok(Some(value)),
            Self::GivenTwice => Err("must be given once"),
        }
    }

    fn required(self) -> Result<&'a RawValue, &'static str> {
        self.optional()?.ok_or("is required")
    }
}

fn check_name(member: &Member<'_>) -> Result<(), ValidationError> {
    check(name(*member))
}

fn check_category_id(member: &Member<'_>) -> Result<(), ValidationError> {
    check(category_id(*member))
}

fn check_status(member: &Member<'_>) -> Result<(), ValidationError> {
    check(status(*member))
}

fn check<T>(parsed: Result<T, String>) -> Result<(), ValidationError> {
    parsed.map(drop).map_err(|problem| ValidationError::new("invalid").with_message(problem.into()))
}

/// Every member that is wrong, in the order of the interface.
fn problems(errors: &ValidationErrors) -> Problems {
    let fields = errors.field_errors();
    let mut problems = Problems::default();
    for (field, member) in [("name", "name"), ("category_id", "categoryId"), ("status", "status")] {
        for error in fields.get(field).copied().into_iter().flatten() {
            problems.push(member, &error.message.as_deref().unwrap_or("is invalid"));
        }
    }
    problems
}

/// `validator` keeps a copy of a refused value beside its error. Nothing reads it, so there is nothing in it.
impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum MemberName {
    Name,
    CategoryId,
    Status,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for NewPetRequest<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NewPetVisitor)
    }
}

struct NewPetVisitor;

impl<'de> Visitor<'de> for NewPetVisitor {
    type Value = NewPetRequest<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut request = NewPetRequest { name: Member::Absent, category_id: Member::Absent, status: Member::Absent };
        while let Some(name) = map.next_key()? {
            let member = match name {
                MemberName::Name => &mut request.name,
                MemberName::CategoryId => &mut request.category_id,
                MemberName::Status => &mut request.status,
                MemberName::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let value = map.next_value()?;
            *member = if matches!(member, Member::Absent) { Member::Given(value) } else { Member::GivenTwice };
        }
        Ok(request)
    }
}
