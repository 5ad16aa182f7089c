//! From 0.1.0 on, a client of a release works with each later one. The document of the release is beside this file.
//!
//! A later service accepts each request that the release accepts, and sends only responses that the release could send.
//! A value that is added to an `enum` is the exception: `CONTRIBUTING.md` says how it is announced.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::DOCUMENT;

const RELEASED: &str = include_str!("released-0.1.0.json");

/// Members that are texts for people, or that others refer to.
const SKIPPED: [&str; 7] = [
    "components",
    "deprecated",
    "description",
    "example",
    "examples",
    "info",
    "summary",
];
/// Members of a schema that forbid values.
const LIMITS: [&str; 9] = [
    "additionalProperties",
    "enum",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
];

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Request,
    Response,
}

/// Two documents, and what breaks a client of the first one.
struct Comparison<'a> {
    released: &'a Value,
    present: &'a Value,
    broken: Vec<String>,
}

/// Returns the places of the changes that break a client.
fn breaking_changes(released: &Value, present: &Value) -> Vec<String> {
    let mut comparison = Comparison {
        released,
        present,
        broken: Vec::new(),
    };
    comparison.compare("", Direction::Request, released, present);
    comparison.compare(
        "/components/securitySchemes",
        Direction::Request,
        &released["components"]["securitySchemes"],
        &present["components"]["securitySchemes"],
    );
    comparison.broken
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).expect("a definition"),
        None => value,
    }
}

/// The values of an array, or of a `required` that is a boolean.
fn values(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Array(values) => values.iter().map(Value::to_string).collect(),
        Value::Bool(true) => BTreeSet::from(["true".to_owned()]),
        _ => BTreeSet::new(),
    }
}

impl<'a> Comparison<'a> {
    fn check(&mut self, place: &str, is_kept: bool) {
        if !is_kept {
            self.broken.push(place.to_owned());
        }
    }

    fn compare(
        &mut self,
        place: &str,
        direction: Direction,
        released: &'a Value,
        present: &'a Value,
    ) {
        let released = resolve(self.released, released);
        let present = resolve(self.present, present);
        match (released, present) {
            (Value::Object(members), Value::Object(_)) => {
                for (name, value) in members {
                    if !SKIPPED.contains(&name.as_str()) {
                        let place = format!("{place}/{name}");
                        self.compare_member(&place, direction, name, value, &present[name]);
                    }
                }
                self.check_new_members(place, direction, released, present);
            }
            (Value::Array(released), Value::Array(present)) => {
                self.check(place, released.len() == present.len());
                for (released, present) in released.iter().zip(present) {
                    self.compare(place, direction, released, present);
                }
            }
            _ => self.check(place, released == present),
        }
    }

    fn compare_member(
        &mut self,
        place: &str,
        direction: Direction,
        name: &str,
        released: &'a Value,
        present: &'a Value,
    ) {
        let is_request = direction == Direction::Request;
        let accepts_less = |less: bool, more: bool| if is_request { less } else { more };
        let numbers = (released.as_i64(), present.as_i64());
        match (name, numbers) {
            ("required", _) => {} // among the new members as well
            ("enum" | "x-extensible-enum", _) => {
                self.check(place, values(present).is_superset(&values(released)));
            }
            ("maximum" | "maxItems" | "maxLength", (Some(released), Some(present))) => {
                self.check(place, !accepts_less(present < released, present > released));
            }
            ("minimum" | "minItems" | "minLength", (Some(released), Some(present))) => {
                self.check(place, !accepts_less(present > released, present < released));
            }
            ("parameters", _) => self.compare_parameters(place, released, present),
            ("responses", _) => self.compare(place, Direction::Response, released, present),
            (name, _) if LIMITS.contains(&name) && is_request && present.is_null() => {}
            _ => self.compare(place, direction, released, present),
        }
    }

    fn check_new_members(
        &mut self,
        place: &str,
        direction: Direction,
        released: &Value,
        present: &Value,
    ) {
        let before = values(&released["required"]);
        let after = values(&present["required"]);
        let is_kept = match direction {
            Direction::Request => after.is_subset(&before),
            Direction::Response => after.is_superset(&before),
        };
        self.check(&format!("{place}/required"), is_kept);
        for limit in LIMITS {
            let is_new = released[limit].is_null() && !present[limit].is_null();
            let refuses_more = is_new && direction == Direction::Request;
            self.check(&format!("{place}/{limit}"), !refuses_more);
        }
    }

    fn compare_parameters(&mut self, place: &str, released: &'a Value, present: &'a Value) {
        let released = released.as_array().expect("parameters");
        let mut added: Vec<&'a Value> = present.as_array().into_iter().flatten().collect();
        for parameter in released {
            let place = format!("{place}/{}", parameter["name"]);
            let same = |other: &&Value| {
                other["name"] == parameter["name"] && other["in"] == parameter["in"]
            };
            match added.iter().position(same) {
                Some(index) => {
                    let present = added.swap_remove(index);
                    self.compare(&place, Direction::Request, parameter, present);
                }
                None => self.check(&place, false),
            }
        }
        for parameter in added {
            self.check(
                &format!("{place}/{}", parameter["name"]),
                parameter["required"] != true,
            );
        }
    }
}

#[test]
fn the_document_breaks_no_client_of_a_release() {
    let released = serde_json::from_str(RELEASED).expect("JSON");
    let broken = breaking_changes(&released, &DOCUMENT);
    assert!(broken.is_empty(), "clients break by changes of {broken:#?}");
}

/// Returns the released document with this value at a JSON pointer, or without the value there.
fn changed(pointer: &str, value: Option<Value>) -> Value {
    let mut document: Value = serde_json::from_str(RELEASED).expect("JSON");
    let (parent, name) = pointer.rsplit_once('/').expect("a member");
    let name = name.replace("~1", "/");
    match (document.pointer_mut(parent), value) {
        (Some(Value::Array(items)), Some(value)) => items.push(value),
        (Some(Value::Object(members)), Some(value)) => drop(members.insert(name, value)),
        (Some(Value::Object(members)), None) => drop(members.remove(&name).expect(pointer)),
        _ => panic!("{pointer} is missing"),
    }
    document
}

#[test]
fn a_change_that_breaks_a_client_is_found() {
    let required_parameter = json!({"name": "x", "in": "query", "required": true, "schema": {}});
    let other_status = json!(["available", "pending"]);
    let with_status = json!(["name", "categoryId", "status"]);
    let rows = [
        ("/paths/~1pets~1{petId}", None),
        ("/paths/~1pets/get", None),
        ("/paths/~1pets/get/operationId", Some(json!("list"))),
        ("/paths/~1pets/get/parameters", Some(json!([]))),
        ("/paths/~1pets/get/parameters/0/required", Some(json!(true))),
        ("/paths/~1pets/get/parameters/-", Some(required_parameter)),
        ("/paths/~1pets/get/responses/401", None),
        ("/components/responses/Unauthorized/content", None),
        ("/components/headers/Location/required", None),
        ("/components/schemas/Pets/maxItems", Some(json!(101))),
        ("/components/schemas/PetStatus/enum", Some(other_status)),
        ("/components/schemas/Pet/allOf/1/required", Some(json!([]))),
        ("/components/schemas/Error/properties/message", None),
        ("/components/schemas/NewPet/required", Some(with_status)),
        ("/components/schemas/NewPet/required", None),
        (
            "/components/schemas/NewPet/properties/name/maxLength",
            Some(json!(254)),
        ),
        (
            "/components/schemas/NewPet/properties/name/pattern",
            Some(json!("x")),
        ),
        (
            "/components/schemas/NewPet/properties/categoryId/type",
            Some(json!("string")),
        ),
        (
            "/components/schemas/PetStatus/pattern",
            Some(json!("^[a-z]+$")),
        ),
        ("/components/securitySchemes/bearer", None),
        ("/servers/0/url", Some(json!("v2"))),
    ];
    let released = serde_json::from_str(RELEASED).expect("JSON");
    for (pointer, value) in rows {
        let present = changed(pointer, value.clone());
        let broken = breaking_changes(&released, &present);
        assert!(!broken.is_empty(), "{pointer}: {value:?}");
    }
}

#[test]
fn an_addition_breaks_no_client() {
    let rows = [
        ("/paths/~1animals", json!({})),
        ("/paths/~1pets/delete", json!({})),
        ("/paths/~1pets/get/responses/406", json!({})),
        ("/paths/~1pets/get/description", json!("Pets.")),
        ("/paths/~1pets/get/parameters/0/schema/maximum", json!(200)),
        ("/components/schemas/NewPet/properties/colour", json!({})),
        (
            "/components/schemas/PetStatus/enum",
            json!(["available", "pending", "sold", "lost"]),
        ),
    ];
    let released = serde_json::from_str(RELEASED).expect("JSON");
    for (pointer, value) in rows {
        let present = changed(pointer, Some(value));
        let broken = breaking_changes(&released, &present);
        assert!(broken.is_empty(), "{pointer}: {broken:?}");
    }
}
