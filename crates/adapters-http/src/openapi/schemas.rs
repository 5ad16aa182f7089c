//! Schemas of pets and errors.

use animal_store_domain::{PageLimit, PetName, PetStatus};
use serde_json::{Value, json};

use super::errors;

pub(super) const JSON: &str = "application/json";

/// No control character, and at least one character that is not white space. The characters are listed, because `\s`
/// and `\p{…}` differ between the languages of clients.
const NAME_PATTERN: &str = concat!(
    r"^[^\u0000-\u001f\u007f-\u009f]*",
    r"[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]",
    r"[^\u0000-\u001f\u007f-\u009f]*$"
);

pub(super) fn all() -> Value {
    let codes: Vec<_> = errors::codes().iter().map(|code| format!("`{code}`")).collect();
    let code = format!("For programs: {}. More codes may be added", codes.join(", "));
    json!({
        "PetStatus": {
            "type": "string", "description": "Availability of the pet", "enum": PetStatus::ALL.map(PetStatus::as_str),
        },
        "NewPet": {
            "type": "object",
            "description": "A pet to add. Unknown members are ignored.",
            "required": ["name", "categoryId"],
            "properties": {
                "name": {
                    "type": "string",
                    "description": "Stored exactly as given. At least one character is not white space",
                    "minLength": 1,
                    "maxLength": PetName::MAX_CHARS,
                    "pattern": NAME_PATTERN,
                },
                "categoryId": {
                    "type": "integer",
                    "format": "int64",
                    "description": "Category of the pet. Within ±2^53, a whole number may be written as `5.0` or `5e0`",
                    "minimum": i64::MIN,
                    "maximum": i64::MAX,
                },
                "status": reference("PetStatus"),
            },
            "examples": [new_pet_example()],
        },
        "Pet": {
            "description": "A pet. It has a `status` only if one was given.",
            "allOf": [
                reference("NewPet"),
                { "type": "object", "required": ["id"], "properties": { "id": id() } },
            ],
            "examples": [pet_example()],
        },
        "Pets": {
            "type": "array",
            "description": "Pets in ascending order of id",
            "items": reference("Pet"),
            "maxItems": PageLimit::MAX,
        },
        "Error": {
            "type": "object",
            "description": "The reason why a request failed",
            "required": ["code", "message", "status"],
            "properties": {
                "code": { "type": "string", "description": code },
                "message": { "type": "string", "description": "For people" },
                "status": {
                    "type": "integer", "description": "The HTTP status code", "minimum": 400, "maximum": 599,
                },
            },
        },
    })
}

/// Id in a path and in a response.
pub(super) fn id() -> Value {
    json!({
        "type": "integer", "format": "int64", "description": "Assigned by the service",
        "minimum": 1, "maximum": i64::MAX,
    })
}

pub(super) fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// A body with this schema.
pub(super) fn content(schema: &str, example: &Value) -> Value {
    json!({ JSON: { "schema": reference(schema), "example": example } })
}

pub(super) fn pet_example() -> Value {
    json!({ "id": 7, "name": "Rex", "categoryId": 1, "status": "available" })
}

pub(super) fn new_pet_example() -> Value {
    json!({ "name": "Rex", "categoryId": 1, "status": "available" })
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, string::string_regex};

    use super::*;

    proptest! {
        #[test]
        fn every_text_of_the_pattern_is_valid(
            text in string_regex(NAME_PATTERN.trim_matches(['^', '$'])).unwrap()
        ) {
            prop_assume!(text.chars().count() <= PetName::MAX_CHARS);
            prop_assert!(PetName::parse(&text).is_ok(), "{text:?}");
        }
    }
}
