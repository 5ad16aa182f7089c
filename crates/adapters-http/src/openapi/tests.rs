mod released;

use std::{collections::BTreeSet, sync::LazyLock};

use actix_web::{ResponseError, http::Method};
use animal_store_domain::{PageLimit, PetName, PetStatus};
use proptest::{prelude::*, string::string_regex};
use serde_json::{Value, json};

use super::OPENAPI_DOCUMENT;
use crate::{
    error::{ApiError, tests::every_error},
    pets::{
        OPERATIONS, Operation,
        get::{DEPRECATED_SINCE, REMOVED_ON, SUCCESSOR, successor_link},
    },
};

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(OPENAPI_DOCUMENT).expect("JSON"));

/// The value at a JSON pointer.
#[track_caller]
fn at(pointer: &str) -> &'static Value {
    DOCUMENT
        .pointer(pointer)
        .unwrap_or_else(|| panic!("{pointer} is missing"))
}

/// The pattern of the schema at a JSON pointer, as the tests of the parsers need it.
pub(crate) fn pattern(schema: &str) -> &'static str {
    at(schema)["pattern"]
        .as_str()
        .expect("a pattern")
        .trim_matches(['^', '$'])
}

/// The value itself, or what its reference leads to.
fn resolved(value: &'static Value) -> &'static Value {
    let reference = value["$ref"].as_str();
    reference.map_or(value, |reference| at(&reference[1..]))
}

/// The members of an object.
fn members(value: &'static Value) -> impl Iterator<Item = (&'static String, &'static Value)> {
    let members = value.as_object().expect("an object").iter();
    members.map(|(name, value)| (name, resolved(value)))
}

/// Path, method and operation.
fn operations() -> impl Iterator<Item = (&'static String, &'static String, &'static Value)> {
    members(at("/paths"))
        .flat_map(|(path, methods)| members(methods).map(move |(name, value)| (path, name, value)))
}

/// The error bodies that are examples of a response.
fn examples(response: &'static Value) -> impl Iterator<Item = &'static Value> {
    let examples = response["content"]["application/json"].get("examples");
    examples
        .into_iter()
        .flat_map(members)
        .map(|(_, example)| &example["value"])
}

fn body(error: &ApiError) -> Value {
    serde_json::to_value(error.response()).expect("JSON")
}

#[test]
fn the_operations_are_those_of_the_code() {
    for (path, method, documented) in operations() {
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
        let operation = Operation::find(&method, &format!("/v1{path}")).expect("an operation");
        assert_eq!(documented["operationId"], operation.name);
        let success = &documented["responses"][operation.success.to_string()];
        assert!(success.is_object(), "{method} {path}");
    }
    assert_eq!(operations().count(), OPERATIONS.len());
}

#[test]
fn the_errors_are_those_of_the_code() {
    let errors = every_error();
    let codes: BTreeSet<_> = errors.iter().map(|error| error.response().code).collect();
    let documented = at("/components/schemas/Error/properties/code/x-extensible-enum");
    let documented = documented.as_array().expect("a list").iter();
    assert_eq!(
        documented
            .filter_map(Value::as_str)
            .collect::<BTreeSet<_>>(),
        codes
    );

    let mut bodies: Vec<_> = operations()
        .flat_map(|(_, _, operation)| members(&operation["responses"]))
        .flat_map(|(_, response)| examples(response).cloned())
        .collect();
    // Requests that reach no operation.
    for error in [
        ApiError::RouteNotFound,
        ApiError::MethodNotAllowed("GET, HEAD"),
    ] {
        bodies.push(body(&error));
    }
    let of_code: Vec<_> = errors.iter().map(body).collect();
    for body in bodies.iter().chain(&of_code) {
        assert!(bodies.contains(body) && of_code.contains(body), "{body}");
    }
}

#[test]
fn every_response_has_the_status_and_the_headers_of_its_errors() {
    let all = every_error();
    for (path, method, operation) in operations() {
        for (status, response) in members(&operation["responses"]) {
            let errors = all
                .iter()
                .filter(|error| examples(response).any(|example| body(error) == *example));
            let sent: Vec<_> = errors.map(ApiError::error_response).collect();
            let is_of_all = sent.iter().all(|error| error.status().as_str() == status);
            assert!(is_of_all, "{method} {path} {status}");
            let has = |name| response["headers"].get(name).is_some();
            for name in ["Accept-Encoding", "Retry-After", "WWW-Authenticate"] {
                let is_sent = sent.iter().any(|error| error.headers().contains_key(name));
                assert_eq!(has(name), is_sent, "{method} {path} {status} {name}");
            }
            // Behind authentication.
            for name in ["RateLimit", "RateLimit-Policy"] {
                assert_eq!(
                    has(name),
                    status != "401",
                    "{method} {path} {status} {name}"
                );
            }
        }
    }
}

#[test]
fn every_operation_has_the_errors_of_every_request() {
    for (path, method, operation) in operations() {
        let examples: Vec<_> = members(&operation["responses"])
            .flat_map(|(_, response)| examples(response))
            .collect();
        for code in [
            "insufficient_scope",
            "internal_error",
            "invalid_api_key",
            "missing_api_key",
            "overloaded",
            "rate_limited",
            "unavailable",
        ] {
            let is_documented = examples.iter().any(|example| example["code"] == code);
            assert!(is_documented, "{method} {path} {code}");
        }
    }
}

#[test]
fn the_constants_are_those_of_the_code() {
    // Those that a request can have: one that only a newer instance accepts is not in the document.
    let statuses = PetStatus::ALL
        .map(PetStatus::as_str)
        .into_iter()
        .filter(|status| status.parse::<PetStatus>().is_ok());
    let statuses: Vec<_> = statuses.collect();
    let list = "/paths/~1pets/get/parameters";
    let schemas = "/components/schemas";
    let headers = "/components/headers";
    for (pointer, value) in [
        (format!("{list}/0/schema/minimum"), json!(PageLimit::MIN)),
        (format!("{list}/0/schema/maximum"), json!(PageLimit::MAX)),
        (
            format!("{list}/0/schema/default"),
            json!(PageLimit::default().get()),
        ),
        (format!("{schemas}/Pets/maxItems"), json!(PageLimit::MAX)),
        (format!("{schemas}/PetStatus/enum"), json!(statuses)),
        (
            format!("{schemas}/NewPet/properties/name/maxLength"),
            json!(PetName::MAX_CHARS),
        ),
        (
            format!("{schemas}/NewPet/properties/categoryId/minimum"),
            json!(i64::MIN),
        ),
        (
            format!("{schemas}/NewPet/properties/categoryId/maximum"),
            json!(i64::MAX),
        ),
        (
            format!("{headers}/Deprecation/schema/enum"),
            json!([DEPRECATED_SINCE]),
        ),
        (format!("{headers}/Sunset/schema/enum"), json!([REMOVED_ON])),
        (
            format!("{headers}/Successor-Link/schema/examples"),
            json!([successor_link(SUCCESSOR)]),
        ),
    ] {
        assert_eq!(*at(&pointer), value, "{pointer}");
    }
}

#[test]
fn the_bounds_of_a_number_that_javascript_rounds_are_also_texts() {
    let schemas = "/components/schemas";
    for pointer in [
        format!("{schemas}/NewPet/properties/categoryId"),
        format!("{schemas}/Pet/allOf/1/properties/id"),
        "/paths/~1pets~1{petId}/get/parameters/0/schema".to_owned(),
    ] {
        let schema = at(&pointer);
        let description = schema["description"].as_str().expect("a text");
        let bounds = format!("{} to {}", schema["minimum"], schema["maximum"]);
        assert!(description.contains(&bounds), "{pointer}");
    }
}

/// Swagger UI would send an example with each request, so only a parameter that is required has one.
#[test]
fn only_a_required_parameter_has_an_example() {
    for (path, method, operation) in operations() {
        for parameter in operation["parameters"].as_array().expect("a list") {
            let has_example =
                parameter.get("example").is_some() || parameter["schema"].get("examples").is_some();
            assert_eq!(
                json!(has_example),
                parameter["required"],
                "{method} {path} {parameter}"
            );
        }
    }
}

proptest! {
    #[test]
    fn every_name_of_the_pattern_is_valid(
        text in string_regex(pattern("/components/schemas/NewPet/properties/name")).unwrap()
    ) {
        prop_assume!(text.chars().count() <= PetName::MAX_CHARS);
        prop_assert!(PetName::parse(&text).is_ok(), "{text:?}");
    }
}
