//! Schemas of pets and errors.

use animal_store_domain::{PageLimit, PetName, PetStatus};
use serde_json::{Value, json};
use utoipa::openapi::{
    ArrayBuilder, KnownFormat, ObjectBuilder, Ref, RefOr, Schema, SchemaFormat, Type, schema::AllOfBuilder,
};

use super::errors;

/// No control character, and at least one character that is not white space. The characters are listed, because `\s` and
/// `\p{…}` differ between the languages of clients.
const NAME_PATTERN: &str = concat!(
    r"^[^\u0000-\u001f\u007f-\u009f]*",
    r"[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]",
    r"[^\u0000-\u001f\u007f-\u009f]*$"
);

pub(super) fn all() -> Vec<(&'static str, RefOr<Schema>)> {
    vec![("PetStatus", status()), ("NewPet", new_pet()), ("Pet", pet()), ("Pets", pets()), ("Error", error())]
}

pub(super) fn reference(name: &str) -> Ref {
    Ref::from_schema_name(name)
}

pub(super) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

pub(super) fn integer() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer)
}

fn int64() -> ObjectBuilder {
    integer().format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
}

/// Id in a path and in a response.
pub(super) fn id() -> ObjectBuilder {
    int64().minimum(Some(1)).maximum(Some(i64::MAX)).description(Some("Assigned by the service"))
}

pub(super) fn example(id: i64) -> Value {
    json!({ "id": id, "name": "Rex", "categoryId": 1, "status": "available" })
}

pub(super) fn new_pet_example() -> Value {
    json!({ "name": "Rex", "categoryId": 1, "status": "available" })
}

fn status() -> RefOr<Schema> {
    text().enum_values(Some(PetStatus::ALL.map(PetStatus::as_str))).description(Some("Availability of the pet")).into()
}

fn new_pet() -> RefOr<Schema> {
    let name = text()
        .min_length(Some(1))
        .max_length(Some(PetName::MAX_CHARS))
        .pattern(Some(NAME_PATTERN))
        .description(Some("Stored exactly as given. At least one character is not white space"));
    let category = int64().minimum(Some(i64::MIN)).maximum(Some(i64::MAX)).description(Some(
        "Category of the pet. Within ±2^53, it may have a fraction or an exponent if it is whole: `5.0`, `5e0`",
    ));
    ObjectBuilder::new()
        .description(Some("A pet to add. Unknown members are ignored."))
        .property("name", name)
        .required("name")
        .property("categoryId", category)
        .required("categoryId")
        .property("status", reference("PetStatus"))
        .examples([new_pet_example()])
        .into()
}

fn pet() -> RefOr<Schema> {
    AllOfBuilder::new()
        .description(Some("A pet. It has a `status` only if one was given."))
        .item(reference("NewPet"))
        .item(ObjectBuilder::new().property("id", id()).required("id"))
        .examples([example(7)])
        .into()
}

fn pets() -> RefOr<Schema> {
    ArrayBuilder::new()
        .items(reference("Pet"))
        .description(Some("Pets in ascending order of id"))
        .max_items(Some(usize::from(PageLimit::MAX)))
        .into()
}

fn error() -> RefOr<Schema> {
    let codes: Vec<_> = errors::codes().iter().map(|code| format!("`{code}`")).collect();
    let code = text().description(Some(format!("For programs: {}. More codes may be added", codes.join(", "))));
    let message = text().description(Some("For people"));
    let status = integer().minimum(Some(400)).maximum(Some(599));
    ObjectBuilder::new()
        .description(Some("The reason why a request failed"))
        .property("code", code)
        .required("code")
        .property("message", message)
        .required("message")
        .property("status", status.description(Some("The HTTP status code")))
        .required("status")
        .into()
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, string::string_regex};

    use super::*;

    proptest! {
        #[test]
        fn every_text_of_the_name_pattern_is_a_valid_name(
            text in string_regex(NAME_PATTERN.trim_matches(['^', '$'])).unwrap()
        ) {
            prop_assume!(text.chars().count() <= PetName::MAX_CHARS);
            prop_assert!(PetName::parse(&text).is_ok(), "{text:?}");
        }
    }
}
