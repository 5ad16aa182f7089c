//! Responses: their headers, and the responses to errors.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, ObjectBuilder, Ref, ResponseBuilder, ResponsesBuilder, example::ExampleBuilder,
    extensions::Extensions,
};

use super::schemas::{integer, reference, text};
use crate::{
    error::ApiError,
    middleware::deprecation::{self, DEPRECATED_SINCE, REMOVED_ON},
};

/// The `Link` of a list, relative to the request.
const NEXT_PATTERN: &str = r#"^<\?limit=[0-9]+(&status=[a-z]+)?&cursor=[A-Za-z0-9_-]{11}>; rel="next"$"#;

pub(super) const JSON: &str = "application/json";

/// Key of the `Link` of a deprecated operation. The key of every other header is its name.
pub(super) const SUCCESSOR: &str = "Successor-Link";

/// Returns all headers of responses, except those of HTTP itself.
pub(super) fn headers() -> Vec<(&'static str, HeaderBuilder)> {
    let only = |value: &str| text().enum_values(Some([value]));
    let pattern = |pattern: &str| text().pattern(Some(pattern));
    let next = json!(r#"<?limit=20&cursor=AAAAAAAAABQ>; rel="next""#);
    let required = [
        ("Cache-Control", "The response must not be stored", only("no-store")),
        ("Deprecation", "Time since which the operation is deprecated (RFC 9745)", only(DEPRECATED_SINCE)),
        ("Location", "URI of the pet, relative to the URI of the request", pattern("^pets/[1-9][0-9]*$")),
        (SUCCESSOR, "The operation to use instead (RFC 8288)", only(deprecation::SUCCESSOR)),
        ("Sunset", "Time after which the operation may be removed (RFC 8594)", only(REMOVED_ON)),
        ("Vary", "Request headers that the response depends on", text()),
        ("WWW-Authenticate", "Challenge (RFC 6750)", pattern(r#"^Bearer realm="animal-store""#)),
        ("X-Content-Type-Options", "The content type must not be guessed", only("nosniff")),
        ("X-Request-Id", "Id of the request, also in the log", pattern("^[A-Za-z0-9._~-]{1,128}$")),
    ];
    let optional = [
        ("Accept-Encoding", "The supported encoding, if the request body was encoded", only("identity")),
        ("Content-Encoding", "Set if the client accepts gzip and the body has more than 1 KiB", only("gzip")),
        (
            "Idempotency-Replayed",
            "Set if an earlier request with the same `Idempotency-Key` added the pet",
            only("true"),
        ),
        ("Link", "The next page, if more pets follow (RFC 8288)", pattern(NEXT_PATTERN).examples([next])),
        ("Retry-After", "Seconds to wait before a retry. Not set with `outcome_unknown`", integer().minimum(Some(0))),
    ];
    let header = |(name, description, schema): (&'static str, &str, ObjectBuilder)| {
        (name, HeaderBuilder::new().description(Some(description)).schema(Some(schema)))
    };
    // utoipa supports this member of a header only as an extension.
    let is_required: Extensions = [("required", true)].into_iter().collect();
    let required = required.map(header).map(|(name, header)| (name, header.extensions(Some(is_required.clone()))));
    required.into_iter().chain(optional.map(header)).collect()
}

/// Creates a response with the headers of every response and more.
pub(super) fn response(description: &str, more_headers: &[&str]) -> ResponseBuilder {
    let all = ["Cache-Control", "X-Content-Type-Options", "X-Request-Id"].iter().chain(more_headers);
    all.fold(ResponseBuilder::new().description(description), |response, &key| {
        let name = if key == SUCCESSOR { "Link" } else { key };
        response.header_ref(name, Ref::new(format!("#/components/headers/{key}")))
    })
}

/// Adds the responses to these errors, one per status.
pub(super) fn with_errors(responses: ResponsesBuilder, errors: &[ApiError], more_headers: &[&str]) -> ResponsesBuilder {
    let mut by_status: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for error in errors.iter().map(ApiError::response) {
        by_status.entry(error.status).or_default().push(error);
    }
    by_status.into_iter().fold(responses, |responses, (status, errors)| {
        let mut headers = more_headers.to_vec();
        headers.extend(errors.iter().filter_map(|error| error.header.as_ref()).map(|(name, _)| key(name.as_str())));
        let examples = errors.iter().enumerate().map(|(index, error)| {
            let earlier = errors[..index].iter().filter(|earlier| earlier.code == error.code).count();
            let name = if earlier == 0 { error.code.to_owned() } else { format!("{}-{}", error.code, earlier + 1) };
            (name, ExampleBuilder::new().value(Some(json!(error))).build())
        });
        let content = ContentBuilder::new().schema(Some(reference("Error"))).examples_from_iter(examples).build();
        let mut codes: Vec<_> = errors.iter().map(|error| format!("`{}`", error.code)).collect();
        codes.dedup();
        let response = response(&codes.join(", "), &headers).content(JSON, content);
        responses.response(status.to_string(), response.build())
    })
}

/// Returns the key of a header of an error.
fn key(name: &str) -> &'static str {
    let header = headers().into_iter().map(|(key, _)| key).find(|key| key.eq_ignore_ascii_case(name));
    header.expect("the document contains every header of an error")
}
