//! The operations of the interface.

use std::collections::BTreeSet;

use animal_store_app::Scope;
use animal_store_domain::PageLimit;
use serde_json::{Value, json};
use utoipa::openapi::{
    Content, ContentBuilder, Deprecated, Required, ResponsesBuilder,
    path::{Operation, OperationBuilder, ParameterBuilder, ParameterIn},
    request_body::RequestBodyBuilder,
};

use super::{
    answers::{JSON, SUCCESSOR, answer, with_errors},
    schemas::{self, integer, reference, text},
};
use crate::error::{ApiError, Problems};

pub(super) const TAG: &str = "pets";

/// Base64url of eight bytes, the first of which is below 128.
const CURSOR_PATTERN: &str = "^[A-Za-f][A-Za-z0-9_-]{9}[AEIMQUYcgkosw048]$";

/// Bare, or a String of structured fields.
const IDEMPOTENCY_KEY_PATTERN: &str = r#"^([!#-~][!-~]{0,254}|"([!#-\[\]-~]|\\["\\]){1,255}")$"#;

pub(super) fn list_pets() -> Operation {
    let limit = integer()
        .minimum(Some(PageLimit::MIN))
        .maximum(Some(PageLimit::MAX))
        .default(Some(json!(PageLimit::default().get())));
    let page = answer("A page of animals", &["Content-Encoding", "Link", "Vary"])
        .content(JSON, content("Pets", json!([schemas::example(7)])));
    operation("listPets", "Lists animals")
        .description(Some(
            "In ascending order of id. Where more follow, `Link` has a `rel=\"next\"`: following it until there is none \
             gives every animal that was there before exactly once, and later ones at most once. Needs an API key with \
             the scope `read`.",
        ))
        .parameter(parameter("limit", ParameterIn::Query, "How many animals at most").schema(Some(limit)))
        .parameter(
            parameter("status", ParameterIn::Query, "Only animals that have it; without it all, those without one too")
                .schema(Some(reference("PetStatus"))),
        )
        .parameter(
            parameter("cursor", ParameterIn::Query, "From a `next` link: where to go on")
                .schema(Some(text().pattern(Some(CURSOR_PATTERN)).examples([json!("AAAAAAAAABQ")]))),
        )
        .responses(with_errors(ResponsesBuilder::new().response("200", page.build()), &list_errors(), &[]))
        .build()
}

pub(super) fn create_pet() -> Operation {
    let body = RequestBodyBuilder::new()
        .description(Some(
            "At most 16 KiB, or what the operator allows, not encoded; another `application/*+json` will do. A member that \
             is given twice is refused.",
        ))
        .required(Some(Required::True))
        .content(JSON, content("NewPet", schemas::new_pet_example()));
    let created = answer(
        "The animal, added now or by an earlier request with the same `Idempotency-Key`",
        &["Location", "Idempotency-Replayed"],
    )
    .content(JSON, content("Pet", schemas::example(7)));
    let key = text().pattern(Some(IDEMPOTENCY_KEY_PATTERN)).examples([json!("8e03978e-40d5-43e8-bc93-6894a57f9324")]);
    operation("createPet", "Adds an animal")
        .description(Some(
            "With an `Idempotency-Key`, a retry never adds a second animal: the same key with the same animal is \
             answered as the first request was, for 24 hours by default; while that is under way, with 409; with another \
             animal, with 422. After `outcome_unknown` the animal may have been added. Needs an API key with the scope \
             `write`.",
        ))
        .parameter(
            parameter(
                "Idempotency-Key",
                ParameterIn::Header,
                "A name of the client's for this request, bare or quoted. Other API keys have other ones",
            )
            .schema(Some(key)),
        )
        .request_body(Some(body.build()))
        .responses(with_errors(ResponsesBuilder::new().response("201", created.build()), &create_errors(), &[]))
        .build()
}

pub(super) fn get_pet() -> Operation {
    let headers = ["Deprecation", "Sunset", SUCCESSOR];
    let found = answer("The animal", &headers).content(JSON, content("Pet", schemas::example(7)));
    let responses = ResponsesBuilder::new().response("200", found.build());
    let responses = with_errors(responses, &get_errors(), &headers);
    operation("getPet", "Fetches an animal by its id")
        .description(Some(
            "Deprecated, and to be removed on 2030-12-05. Use `listPets` with `status`. Needs an API key with the scope \
             `read`.",
        ))
        .deprecated(Some(Deprecated::True))
        .parameter(
            parameter("petId", ParameterIn::Path, "The id of the animal")
                .required(Required::True)
                .schema(Some(schemas::id())),
        )
        .responses(with_errors(responses, &of_every_operation(), &[]))
        .build()
}

fn list_errors() -> Vec<ApiError> {
    let mut errors = vec![
        ApiError::InvalidQuery(Problems::one("limit must be a whole number from 1 to 100")),
        ApiError::InsufficientScope(Scope::Read),
    ];
    errors.extend(of_every_operation());
    errors
}

fn create_errors() -> Vec<ApiError> {
    let mut errors = vec![
        ApiError::InvalidBody(Problems::one("name must be a string; categoryId is required")),
        ApiError::InvalidHeader(Problems::one("Idempotency-Key must be sent once")),
        ApiError::MalformedRequest,
        ApiError::InsufficientScope(Scope::Write),
        ApiError::RequestTimeout,
        ApiError::IdempotencyConflict,
        ApiError::PayloadTooLarge(16 * 1024),
        ApiError::UnsupportedContentType,
        ApiError::UnsupportedContentEncoding,
        ApiError::IdempotencyMismatch,
        ApiError::OutcomeUnknown("".into()),
    ];
    errors.extend(of_every_operation());
    errors
}

/// Those that tell of the end of the operation: a request with a valid API key was understood.
fn get_errors() -> Vec<ApiError> {
    vec![ApiError::PetNotFound, ApiError::InsufficientScope(Scope::Read)]
}

/// What can go wrong with any of them.
fn of_every_operation() -> Vec<ApiError> {
    vec![
        ApiError::MissingApiKey,
        ApiError::MalformedApiKey,
        ApiError::UnknownApiKey,
        ApiError::Internal("".into()),
        ApiError::Unavailable("".into()),
        ApiError::Overloaded,
    ]
}

/// The code of every error, those of requests that reach no operation among them.
pub(super) fn codes() -> BTreeSet<&'static str> {
    let elsewhere = [ApiError::RouteNotFound, ApiError::MethodNotAllowed("")];
    let errors = list_errors().into_iter().chain(create_errors()).chain(get_errors()).chain(elsewhere);
    errors.map(|error| error.code()).collect()
}

fn operation(id: &str, summary: &str) -> OperationBuilder {
    OperationBuilder::new().operation_id(Some(id)).summary(Some(summary)).tag(TAG)
}

fn content(schema: &str, example: Value) -> Content {
    ContentBuilder::new().schema(Some(reference(schema))).example(Some(example)).build()
}

fn parameter(name: &str, place: ParameterIn, description: &str) -> ParameterBuilder {
    ParameterBuilder::new().name(name).parameter_in(place).required(Required::False).description(Some(description))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
    use animal_store_app::ApiKeyId;
    use proptest::{prelude::*, string::string_regex};

    use super::*;
    use crate::pets::{decode_cursor, parse_idempotency_key};

    proptest! {
        #[test]
        fn every_cursor_that_the_pattern_allows_is_a_cursor(
            text in string_regex(CURSOR_PATTERN.trim_matches(['^', '$'])).unwrap()
        ) {
            prop_assert!(decode_cursor(&text).is_ok(), "{text:?}");
        }

        #[test]
        fn every_key_that_the_pattern_allows_is_a_key(
            text in string_regex(IDEMPOTENCY_KEY_PATTERN.trim_matches(['^', '$'])).unwrap()
        ) {
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static("idempotency-key"), HeaderValue::from_str(&text).unwrap());
            let key = parse_idempotency_key(&headers, &ApiKeyId::new("shop"));
            prop_assert!(matches!(key, Ok(Some(_))), "{text:?}");
        }
    }
}
