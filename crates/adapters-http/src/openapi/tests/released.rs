//! From 0.1.0 on, a client of a release works with each later one. The document of the release is beside this file.
//!
//! The present document keeps everything of the released one, and adds no limit to what it has. A change that breaks no
//! client is listed here by hand. `CONTRIBUTING.md` says how a value that is added to an `enum` is announced.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::DOCUMENT;

const RELEASED: &str = include_str!("released-0.1.0.json");

/// Places of changes that break no client, such as a greater `maximum` of a parameter.
const ACCEPTED: [&str; 0] = [];

/// Members that are texts for people.
const SKIPPED: [&str; 6] = [
    "deprecated",
    "description",
    "example",
    "examples",
    "info",
    "summary",
];
/// Members of a schema that forbid values.
const LIMITS: [&str; 10] = [
    "additionalProperties",
    "enum",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "required",
];

fn released() -> Value {
    serde_json::from_str(RELEASED).expect("JSON")
}

/// Returns the places at and below this one where a document lacks or changes something of the released one, or has a
/// new limit.
fn changes(place: &str, released: &Value, present: &Value) -> Vec<String> {
    let names: BTreeSet<_> = match (released.pointer(place), present.pointer(place)) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let limits = after.keys().filter(|name| LIMITS.contains(&name.as_str()));
            let compared = before
                .keys()
                .filter(|name| !SKIPPED.contains(&name.as_str()));
            let names = compared.chain(limits);
            names.map(|name| name.replace('/', "~1")).collect()
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            let mut count = before.len();
            if !place.ends_with("/x-extensible-enum") {
                count = count.max(after.len());
            }
            (0..count).map(|index| index.to_string()).collect()
        }
        (before, after) if before == after => return Vec::new(),
        _ => return vec![place.to_owned()],
    };
    let below = |name| changes(&format!("{place}/{name}"), released, present);
    names.into_iter().flat_map(below).collect()
}

#[test]
fn the_document_breaks_no_client_of_a_release() {
    assert_eq!(changes("", &released(), &DOCUMENT), ACCEPTED);
}

/// Returns the changes if the document has this member. `null` stands for none.
fn changes_by(pointer: &str, value: Value) -> Vec<String> {
    let mut document = released();
    let (parent, name) = pointer.rsplit_once('/').expect("a member");
    let members = document.pointer_mut(parent).and_then(Value::as_object_mut);
    let members = members.expect(pointer);
    members.insert(name.replace("~1", "/"), value);
    changes("", &released(), &document)
}

#[test]
fn a_change_that_can_break_a_client_is_found() {
    let list = "/paths/~1pets/get";
    let schemas = "/components/schemas";
    for (pointer, value) in [
        ("/servers/0/url".to_owned(), json!("v2")),
        ("/components/securitySchemes/bearer".to_owned(), json!(null)),
        (
            "/components/headers/Location/required".to_owned(),
            json!(null),
        ),
        ("/paths/~1pets~1{petId}".to_owned(), json!(null)),
        (format!("{list}/operationId"), json!("list")),
        (format!("{list}/parameters"), json!([])),
        (format!("{list}/parameters/0/required"), json!(true)),
        (format!("{list}/responses/401"), json!(null)),
        (format!("{schemas}/Pets/maxItems"), json!(101)),
        (format!("{schemas}/PetStatus/enum"), json!(["available"])),
        (format!("{schemas}/PetStatus/pattern"), json!("^[a-z]+$")),
        (
            format!("{schemas}/NewPet/required"),
            json!(["name", "categoryId", "status"]),
        ),
        (
            format!("{schemas}/NewPet/properties/name/maxLength"),
            json!(254),
        ),
        (
            format!("{schemas}/NewPet/properties/categoryId/type"),
            json!("string"),
        ),
    ] {
        let changes = changes_by(&pointer, value);
        assert!(!changes.is_empty(), "{pointer}");
        assert!(
            changes.iter().all(|place| place.starts_with(&pointer)),
            "{changes:?}"
        );
    }
}

#[test]
fn an_addition_breaks_no_client() {
    let codes = "/components/schemas/Error/properties/code/x-extensible-enum";
    let mut more = released().pointer(codes).expect("codes").clone();
    more.as_array_mut().expect("a list").push(json!("new"));
    for (pointer, value) in [
        ("/paths/~1animals", json!({})),
        ("/paths/~1pets/delete", json!({})),
        ("/paths/~1pets/get/responses/406", json!({})),
        ("/paths/~1pets/get/description", json!("Pets.")),
        ("/components/schemas/NewPet/properties/colour", json!({})),
        (codes, more),
    ] {
        assert_eq!(changes_by(pointer, value), [""; 0], "{pointer}");
    }
}
