//! The operations of the interface.

use animal_store_domain::PageLimit;
use serde_json::{Value, json};
use utoipa::openapi::{
    Content, ContentBuilder, Deprecated, Required, ResponsesBuilder,
    path::{Operation, OperationBuilder, ParameterBuilder, ParameterIn},
    request_body::RequestBodyBuilder,
};

use super::{
    errors,
    responses::{JSON, SUCCESSOR, response, with_errors},
    schemas::{self, integer, reference, text},
};

pub(super) const TAG: &str = "pets";

/// Base64url of eight bytes, the first of which is less than 128.
const CURSOR_PATTERN: &str = "^[A-Za-f][A-Za-z0-9_-]{9}[AEIMQUYcgkosw048]$";

/// A bare key or a String of structured fields.
const IDEMPOTENCY_KEY_PATTERN: &str = r#"^([!#-~][!-~]{0,254}|"([!#-\[\]-~]|\\["\\]){1,255}")$"#;

pub(super) fn list_pets() -> Operation {
    let limit = integer()
        .minimum(Some(PageLimit::MIN))
        .maximum(Some(PageLimit::MAX))
        .default(Some(json!(PageLimit::default().get())));
    let cursor = text().pattern(Some(CURSOR_PATTERN)).examples([json!("AAAAAAAAABQ")]);
    let page = response("A page of pets", &["Content-Encoding", "Link", "Vary"])
        .content(JSON, content("Pets", json!([schemas::example(7)])));
    operation("listPets", "List pets")
        .description(Some(
            "Returns pets in ascending order of id. If more pets follow, `Link` contains the next page (`rel=\"next\"`). \
             Following `Link` until it is absent returns each pet that existed at the first request exactly once, and each \
             later pet at most once. The API key needs the scope `read`.",
        ))
        .parameter(
            parameter("limit", ParameterIn::Query, "Maximum number of pets to return").schema(Some(limit)),
        )
        .parameter(
            parameter("status", ParameterIn::Query, "Filter by status; default: all pets")
                .schema(Some(reference("PetStatus"))),
        )
        .parameter(
            parameter("cursor", ParameterIn::Query, "Position of the page, from a `next` link; default: the first page")
                .schema(Some(cursor)),
        )
        .responses(with_errors(ResponsesBuilder::new().response("200", page.build()), &errors::list_pets(), &[]))
        .build()
}

pub(super) fn create_pet() -> Operation {
    let body = RequestBodyBuilder::new()
        .description(Some(
            "A pet as a JSON object of at most 16 KiB, or the limit set by the operator. The content type is \
             `application/json` or another `application/*+json`, without an encoding. No member may be given twice.",
        ))
        .required(Some(Required::True))
        .content(JSON, content("NewPet", schemas::new_pet_example()));
    let description = "The pet, added by this request or by an earlier request with the same `Idempotency-Key`";
    let created =
        response(description, &["Location", "Idempotency-Replayed"]).content(JSON, content("Pet", schemas::example(7)));
    let key = text().pattern(Some(IDEMPOTENCY_KEY_PATTERN)).examples([json!("8e03978e-40d5-43e8-bc93-6894a57f9324")]);
    operation("createPet", "Add a pet")
        .description(Some(
            "With an `Idempotency-Key`, a retry never adds a second pet. For 24 hours by default, the same key with the \
             same pet returns the response to the first request. While the first request is in flight, the response is \
             409; with another pet, it is 422. After `outcome_unknown`, the pet may have been added. The API key needs \
             the scope `write`.",
        ))
        .parameter(
            parameter(
                "Idempotency-Key",
                ParameterIn::Header,
                "A client-chosen key, unique per API key, bare or as a quoted string",
            )
            .schema(Some(key)),
        )
        .request_body(Some(body.build()))
        .responses(with_errors(ResponsesBuilder::new().response("201", created.build()), &errors::create_pet(), &[]))
        .build()
}

pub(super) fn get_pet() -> Operation {
    let headers = ["Deprecation", "Sunset", SUCCESSOR];
    let found = response("The pet", &headers).content(JSON, content("Pet", schemas::example(7)));
    let responses = ResponsesBuilder::new().response("200", found.build());
    let responses = with_errors(responses, &errors::get_pet(), &headers);
    operation("getPet", "Get a pet by id")
        .description(Some(
            "Deprecated; to be removed on 2030-12-05. Use `listPets` with `status`. The API key needs the scope `read`.",
        ))
        .deprecated(Some(Deprecated::True))
        .parameter(
            parameter("petId", ParameterIn::Path, "Id of the pet").required(Required::True).schema(Some(schemas::id())),
        )
        .responses(with_errors(responses, &errors::common(), &[]))
        .build()
}

fn operation(id: &str, summary: &str) -> OperationBuilder {
    OperationBuilder::new().operation_id(Some(id)).summary(Some(summary)).tag(TAG)
}

fn content(schema: &str, example: Value) -> Content {
    ContentBuilder::new().schema(Some(reference(schema))).example(Some(example)).build()
}

fn parameter(name: &str, location: ParameterIn, description: &str) -> ParameterBuilder {
    ParameterBuilder::new().name(name).parameter_in(location).required(Required::False).description(Some(description))
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
        fn every_text_of_the_cursor_pattern_is_a_valid_cursor(
            text in string_regex(CURSOR_PATTERN.trim_matches(['^', '$'])).unwrap()
        ) {
            prop_assert!(decode_cursor(&text).is_ok(), "{text:?}");
        }

        #[test]
        fn every_text_of_the_key_pattern_is_a_valid_key(
            text in string_regex(IDEMPOTENCY_KEY_PATTERN.trim_matches(['^', '$'])).unwrap()
        ) {
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static("idempotency-key"), HeaderValue::from_str(&text).unwrap());
            let key = parse_idempotency_key(&headers, &ApiKeyId::new("shop"));
            prop_assert!(matches!(key, Ok(Some(_))), "{text:?}");
        }
    }
}
