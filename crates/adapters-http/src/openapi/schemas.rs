//! What animals and errors look like.

use animal_store_domain::{PageLimit, PetName, PetStatus};
use serde_json::{Value, json};
use utoipa::openapi::{
    ArrayBuilder, KnownFormat, ObjectBuilder, Ref, RefOr, Schema, SchemaFormat, Type, schema::AllOfBuilder,
};

use super::operations;

/// One or more characters that are no control characters, one of which is no white space. Spelled out: what `\s` and `\p{…}`
/// mean differs between the languages of clients.
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

/// An id, as a path has it and as an answer does.
pub(super) fn id() -> ObjectBuilder {
    int64().minimum(Some(1)).maximum(Some(i64::MAX)).description(Some("Given by the service on creation"))
}

pub(super) fn example(id: i64) -> Value {
    json!({ "id": id, "name": "Rex", "categoryId": 1, "status": "available" })
}

pub(super) fn new_pet_example() -> Value {
    json!({ "name": "Rex", "categoryId": 1, "status": "available" })
}

fn status() -> RefOr<Schema> {
    text().enum_values(Some(PetStatus::ALL.map(PetStatus::as_str))).description(Some("Availability")).into()
}

fn new_pet() -> RefOr<Schema> {
    let name = text()
        .min_length(Some(1))
        .max_length(Some(PetName::MAX_CHARS))
        .pattern(Some(NAME_PATTERN))
        .description(Some("Kept exactly as it is given; one character at least is no white space"));
    let category = int64().minimum(Some(i64::MIN)).maximum(Some(i64::MAX)).description(Some(
        "The category it belongs to. With a fraction or an exponent (`5.0`, `5e0`), it is whole and within ±2^53",
    ));
    ObjectBuilder::new()
        .description(Some("An animal to be added. Unknown members are ignored."))
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
        .description(Some("An animal. It has a `status` only where one was given."))
        .item(reference("NewPet"))
        .item(ObjectBuilder::new().property("id", id()).required("id"))
        .examples([example(7)])
        .into()
}

fn pets() -> RefOr<Schema> {
    ArrayBuilder::new()
        .items(reference("Pet"))
        .description(Some("Animals in ascending order of id"))
        .max_items(Some(usize::from(PageLimit::MAX)))
        .into()
}

fn error() -> RefOr<Schema> {
    let codes: Vec<_> = operations::codes().iter().map(|code| format!("`{code}`")).collect();
    let code = text().description(Some(format!("For programs: {}. There may be others later", codes.join(", "))));
    let message = text().description(Some("For people"));
    let status = integer().minimum(Some(400)).maximum(Some(599));
    ObjectBuilder::new()
        .description(Some("Why a request was not carried out"))
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
        fn every_name_that_the_pattern_allows_is_a_name(
            text in string_regex(NAME_PATTERN.trim_matches(['^', '$'])).unwrap()
        ) {
            prop_assume!(text.chars().count() <= PetName::MAX_CHARS);
            prop_assert!(PetName::parse(&text).is_ok(), "{text:?}");
        }
    }
}
