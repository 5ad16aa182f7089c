//! Answers: the headers that they carry, and those that are no success.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, ObjectBuilder, Ref, ResponseBuilder, ResponsesBuilder, example::ExampleBuilder,
    extensions::Extensions,
};

use super::schemas::{integer, reference, text};
use crate::{
    deprecation::{self, DEPRECATED_SINCE, REMOVED_ON},
    error::ApiError,
};

/// What a list answers: relative to the request.
const NEXT_PATTERN: &str = r#"^<\?limit=[0-9]+(&status=[a-z]+)?&cursor=[A-Za-z0-9_-]{11}>; rel="next"$"#;

pub(super) const JSON: &str = "application/json";

/// The `Link` of a deprecated operation. Headers are named after themselves in the document, but for this second one.
pub(super) const SUCCESSOR: &str = "Successor-Link";

/// Every header that an answer may have besides those of HTTP itself.
pub(super) fn headers() -> Vec<(&'static str, HeaderBuilder)> {
    let only = |value: &str| text().enum_values(Some([value]));
    let next = json!(r#"<?limit=20&cursor=AAAAAAAAABQ>; rel="next""#);
    let location = text().pattern(Some("^pets/[1-9][0-9]*$"));
    let always = [
        ("Cache-Control", "Answers are not to be kept", only("no-store")),
        ("Deprecation", "Since when the operation is deprecated (RFC 9745)", only(DEPRECATED_SINCE)),
        ("Location", "The animal, relative to the URI of the request", location),
        (SUCCESSOR, "The operation to be used instead (RFC 8288)", only(deprecation::SUCCESSOR)),
        ("Sunset", "When the operation is to be removed (RFC 8594)", only(REMOVED_ON)),
        ("Vary", "Which headers of the request the answer depends on", text()),
        ("WWW-Authenticate", "What is asked for (RFC 6750)", text().pattern(Some(r#"^Bearer realm="animal-store""#))),
        ("X-Content-Type-Options", "Types are not to be guessed", only("nosniff")),
        (
            "X-Request-Id",
            "The name of the request, as it is in the log",
            text().pattern(Some("^[A-Za-z0-9._~-]{1,128}$")),
        ),
    ];
    let sometimes = [
        ("Accept-Encoding", "Where the body was encoded: the encoding that it may have", only("identity")),
        ("Content-Encoding", "Where the client asks for it, and the body has more than 1 KiB", only("gzip")),
        ("Idempotency-Replayed", "An earlier request with the same `Idempotency-Key` got this answer", only("true")),
        ("Link", "Where more animals follow: to them (RFC 8288)", text().pattern(Some(NEXT_PATTERN)).examples([next])),
        ("Retry-After", "In seconds. Not with `outcome_unknown`", integer().minimum(Some(0))),
    ];
    let header = |description: &str, schema: ObjectBuilder| {
        HeaderBuilder::new().description(Some(description)).schema(Some(schema))
    };
    // utoipa has no such member of a header; this is how it writes one.
    let required: Extensions = [("required", true)].into_iter().collect();
    let always = always.map(|(name, about, schema)| (name, header(about, schema).extensions(Some(required.clone()))));
    let sometimes = sometimes.map(|(name, about, schema)| (name, header(about, schema)));
    always.into_iter().chain(sometimes).collect()
}

/// An answer with the headers that all have.
pub(super) fn answer(description: &str, more_headers: &[&str]) -> ResponseBuilder {
    let all = ["Cache-Control", "X-Content-Type-Options", "X-Request-Id"].iter().chain(more_headers);
    all.fold(ResponseBuilder::new().description(description), |response, &name| {
        let header = if name == SUCCESSOR { "Link" } else { name };
        response.header_ref(header, Ref::new(format!("#/components/headers/{name}")))
    })
}

/// Adds the answers to what can go wrong, one for each status.
pub(super) fn with_errors(responses: ResponsesBuilder, errors: &[ApiError], more_headers: &[&str]) -> ResponsesBuilder {
    let mut by_status: BTreeMap<u16, Vec<&ApiError>> = BTreeMap::new();
    for error in errors {
        by_status.entry(error.status().as_u16()).or_default().push(error);
    }
    by_status.into_iter().fold(responses, |responses, (status, errors)| {
        let mut headers = more_headers.to_vec();
        headers.extend(errors.iter().filter_map(|error| error.advice()).map(|(name, _)| canonical(name.as_str())));
        let examples = errors.iter().enumerate().map(|(index, error)| {
            let earlier = errors[..index].iter().filter(|earlier| earlier.code() == error.code()).count();
            let name = if earlier == 0 { error.code().to_owned() } else { format!("{}-{}", error.code(), earlier + 1) };
            (name, ExampleBuilder::new().value(Some(json!(error.body()))).build())
        });
        let content = ContentBuilder::new().schema(Some(reference("Error"))).examples_from_iter(examples).build();
        let mut codes: Vec<_> = errors.iter().map(|error| format!("`{}`", error.code())).collect();
        codes.dedup();
        let response = answer(&codes.join(", "), &headers).content(JSON, content);
        responses.response(status.to_string(), response.build())
    })
}

/// As the document names it.
fn canonical(name: &str) -> &'static str {
    let known = headers().into_iter().map(|(known, _)| known).find(|known| known.eq_ignore_ascii_case(name));
    known.expect("every header of an error is described")
}
