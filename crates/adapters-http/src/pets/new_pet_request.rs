//! The body of `createPet`: each member is parsed by the rules of the domain, and one message has all problems.

#[cfg(test)]
mod tests;

use animal_store_domain::{CategoryId, NewPet, PetName, PetStatus, PetStatusError};
use validator::{Validate, ValidationError};

use super::{
    members::{self, Member},
    numbers,
};
use crate::error::Problems;

/// The members, in the order in which problems are reported.
const MEMBERS: [&str; 3] = ["name", "categoryId", "status"];

#[derive(Validate)]
#[expect(non_snake_case, reason = "`validator` reports fields by their names, which are those of the interface")]
struct NewPetRequest<'a> {
    #[validate(custom(function = "check_name"))]
    name: Member<'a>,
    #[validate(custom(function = "check_category_id"))]
    categoryId: Member<'a>,
    #[validate(custom(function = "check_status"))]
    status: Member<'a>,
}

/// Parses a request body, or another text of the same shape. `subject` names it in problems.
pub(super) fn parse(json: &[u8], subject: &str) -> Result<NewPet, Problems> {
    let invalid = |problem: &str| Problems::one(format!("{subject} must be {problem}"));
    let text = str::from_utf8(json).map_err(|_| invalid("JSON in UTF-8"))?;
    let [name, category_id, status] = members::of_object(text, MEMBERS)
        .map_err(|error| invalid(if error.is_data() { "a JSON object" } else { "valid JSON" }))?;
    let request = NewPetRequest { name, categoryId: category_id, status };
    request.validate().map_err(|errors| {
        let errors = errors.field_errors();
        members::problems(MEMBERS.map(|member| (member, errors.get(member).and_then(|errors| errors.first()))))
    })?;
    Ok(request.new_pet().expect("every member is valid"))
}

impl NewPetRequest<'_> {
    fn new_pet(&self) -> Result<NewPet, ValidationError> {
        let new_pet = NewPet::new(parse_name(&self.name)?, parse_category_id(&self.categoryId)?);
        Ok(new_pet.with_status(parse_status(&self.status)?))
    }
}

fn check_name(member: &Member) -> Result<(), ValidationError> {
    parse_name(member).map(drop)
}

fn check_category_id(member: &Member) -> Result<(), ValidationError> {
    parse_category_id(member).map(drop)
}

fn check_status(member: &Member) -> Result<(), ValidationError> {
    parse_status(member).map(drop)
}

fn parse_name(member: &Member) -> Result<PetName, ValidationError> {
    member.required(|json| {
        let text = parse_string(json).ok_or("must be a string")?;
        PetName::parse(&text).map_err(|error| error.to_string())
    })
}

fn parse_category_id(member: &Member) -> Result<CategoryId, ValidationError> {
    member.required(|json| numbers::parse_json(json).map(CategoryId::new).ok_or("must be a 64-bit integer"))
}

fn parse_status(member: &Member) -> Result<Option<PetStatus>, ValidationError> {
    member.optional(|json| parse_string(json).ok_or(PetStatusError)?.parse().map(Some))
}

fn parse_string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}
