//! Answers: the headers that they carry, and those that are no success.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::{ContentBuilder, HeaderBuilder, Ref, ResponseBuilder, ResponsesBuilder, example::ExampleBuilder};

use super::schemas::{integer, reference, text};
use crate::{
    deprecation::{DEPRECATED_SINCE, REMOVED_ON},
    error::ApiError,
};

pub(super) const JSON: &str = "application/json";

/// Every header that an answer may have besides those of HTTP itself.
pub(super) fn headers() -> Vec<(&'static str, HeaderBuilder)> {
    let always = |value: &str| text().enum_values(Some([value]));
    let next = json!(r#"<?limit=20&cursor=AAAAAAAAABQ>; rel="next""#);
    let seconds = integer().minimum(Some(0));
    let all = [
        ("Accept-Encoding", "The encoding that a body may have", always("identity")),
        ("Cache-Control", "Answers are not to be kept", always("no-store")),
        ("Content-Encoding", "Where the client asks for it, and the body has more than 1 KiB", always("gzip")),
        ("Deprecation", "Since when the operation is deprecated (RFC 9745)", always(DEPRECATED_SINCE)),
        ("Idempotency-Replayed", "An earlier request with the same `Idempotency-Key` got this answer", always("true")),
        ("Link", "Where more is (RFC 8288)", text().examples([next])),
        ("Location", "The animal, relative to the URI of the request", text().pattern(Some("^pets/[1-9][0-9]*$"))),
        ("Retry-After", "In seconds", seconds),
        ("Sunset", "When the operation is to be removed (RFC 8594)", always(REMOVED_ON)),
        ("Vary", "Which headers of a request the answer depends on", text()),
        ("WWW-Authenticate", "What is asked for (RFC 6750)", text().pattern(Some(r#"^Bearer realm="animal-store""#))),
        ("X-Content-Type-Options", "Types are not to be guessed", always("nosniff")),
        ("X-Request-Id", "Names the request in the log", text().pattern(Some("^[A-Za-z0-9._~-]{1,128}$"))),
    ];
    all.map(|(name, description, schema)| {
        (name, HeaderBuilder::new().description(Some(description)).schema(Some(schema)))
    })
    .into()
}

/// An answer with the headers that all have.
pub(super) fn answer(description: &str, more_headers: &[&str]) -> ResponseBuilder {
    let all = ["Cache-Control", "X-Content-Type-Options", "X-Request-Id"].iter().chain(more_headers);
    all.fold(ResponseBuilder::new().description(description), |response, name| {
        response.header_ref(*name, Ref::new(format!("#/components/headers/{name}")))
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
        let examples = errors.iter().enumerate().map(|(number, error)| {
            let name =
                if errors.len() == 1 { error.code().to_owned() } else { format!("{}-{}", error.code(), number + 1) };
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
