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
        get::{DEPRECATED_SINCE, REMOVED_ON, SUCCESSOR},
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

/// The members of an object, which may be references.
fn members(value: &'static Value) -> impl Iterator<Item = (&'static str, &'static Value)> {
    let resolved = |value: &'static Value| {
        value["$ref"]
            .as_str()
            .map_or(value, |reference| at(&reference[1..]))
    };
    value
        .as_object()
        .expect("an object")
        .iter()
        .map(move |(name, value)| (name.as_str(), resolved(value)))
}

/// Path, method and operation.
fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    members(at("/paths"))
        .flat_map(|(path, methods)| members(methods).map(move |(name, value)| (path, name, value)))
}

/// The responses of an operation, by status.
fn responses(operation: &'static Value) -> impl Iterator<Item = (&'static str, &'static Value)> {
    members(&operation["responses"])
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
fn the_bodies_of_errors_are_those_of_the_code() {
    let responses = operations().flat_map(|(_, _, operation)| responses(operation));
    let documented: Vec<_> = responses
        .flat_map(|(_, response)| examples(response))
        .collect();
    // The other requests reach no operation.
    let has_operation = |error: &&ApiError| {
        !matches!(
            error,
            ApiError::RouteNotFound | ApiError::MethodNotAllowed(_)
        )
    };
    let errors: Vec<_> = every_error()
        .iter()
        .filter(has_operation)
        .map(body)
        .collect();
    for example in &documented {
        assert!(errors.contains(example), "no error has the body {example}");
    }
    for error in &errors {
        assert!(
            documented.contains(&error),
            "no response has the body {error}"
        );
    }
}

#[test]
fn the_codes_are_those_of_the_code() {
    let documented = at("/components/schemas/Error/properties/code/x-extensible-enum");
    let documented: BTreeSet<_> = documented
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(
        documented,
        every_error()
            .iter()
            .map(|error| error.response().code)
            .collect()
    );
}

#[test]
fn every_error_response_has_the_status_and_the_headers_of_its_errors() {
    let all = every_error();
    for (path, method, operation) in operations() {
        for (status, response) in responses(operation) {
            let errors = all
                .iter()
                .filter(|error| examples(response).any(|example| body(error) == *example));
            let sent: Vec<_> = errors.map(ApiError::error_response).collect();
            assert!(
                sent.iter().all(|error| error.status().as_str() == status),
                "{method} {path} {status}"
            );
            for name in ["Accept-Encoding", "Retry-After", "WWW-Authenticate"] {
                let documented = response["headers"].get(name).is_some();
                let is_sent = sent.iter().any(|error| error.headers().contains_key(name));
                assert_eq!(documented, is_sent, "{method} {path} {status} {name}");
            }
        }
    }
}

#[test]
fn every_operation_has_the_errors_of_every_request() {
    let common = [
        "insufficient_scope",
        "internal_error",
        "invalid_api_key",
        "missing_api_key",
        "overloaded",
    ];
    for (path, method, operation) in operations() {
        let examples = responses(operation).flat_map(|(_, response)| examples(response));
        let codes: BTreeSet<_> = examples
            .filter_map(|example| example["code"].as_str())
            .collect();
        for code in common.into_iter().chain(["rate_limited", "unavailable"]) {
            assert!(codes.contains(code), "{method} {path} {code}");
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
            json!([SUCCESSOR]),
        ),
    ] {
        assert_eq!(*at(&pointer), value, "{pointer}");
    }
}

#[test]
fn every_response_behind_authentication_may_have_the_fields_of_rate_limits() {
    for (path, method, operation) in operations() {
        for (status, response) in responses(operation) {
            for name in ["RateLimit", "RateLimit-Policy"] {
                let is_documented = response["headers"].get(name).is_some();
                assert_eq!(is_documented, status != "401", "{method} {path} {status}");
            }
        }
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
