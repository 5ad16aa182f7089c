//! Responses: their headers, and the responses to errors.

use std::collections::BTreeMap;

use actix_web::http::header::HeaderName;
use serde_json::{Map, Value, json};
use utoipa::openapi::{Header, extensions::Extensions};

use super::schemas::{JSON, reference};
use crate::{
    error::ApiError,
    middleware::deprecation::{self, DEPRECATED_SINCE, REMOVED_ON},
};

/// The `Link` of a list, relative to the request.
const NEXT_PATTERN: &str = r#"^<\?limit=[0-9]+(&status=[a-z]+)?&cursor=[A-Za-z0-9_-]{11}>; rel="next"$"#;

/// Headers of every response to an API key whose rate is limited.
pub(super) const RATE_FIELDS: &[&str] = &["RateLimit", "RateLimit-Policy"];

/// Key of the `Link` of a deprecated operation. The key of every other header is its name.
pub(super) const SUCCESSOR: &str = "Successor-Link";

/// Returns all headers of responses, except those of HTTP itself.
pub(super) fn headers() -> BTreeMap<String, Header> {
    let only = |value: &str| json!({ "type": "string", "enum": [value] });
    let pattern = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let next = json!({
        "type": "string", "pattern": NEXT_PATTERN, "examples": [r#"<?limit=20&cursor=AAAAAAAAABQ>; rel="next""#],
    });
    let quota = json!({
        "type": "string", "pattern": r#"^"default";r=[0-9]+;t=[0-9]+$"#, "examples": [r#""default";r=99;t=1"#],
    });
    let policy = json!({
        "type": "string", "pattern": r#"^"default";q=[0-9]+;w=[0-9]+$"#, "examples": [r#""default";q=100;w=1"#],
    });
    let seconds = json!({ "type": "integer", "minimum": 0 });
    let required = [
        ("Cache-Control", "The response must not be stored", only("no-store")),
        ("Deprecation", "Time since which the operation is deprecated (RFC 9745)", only(DEPRECATED_SINCE)),
        ("Location", "URI of the pet, relative to the URI of the request", pattern("^pets/[1-9][0-9]*$")),
        (SUCCESSOR, "The operation to use instead (RFC 8288)", only(deprecation::SUCCESSOR)),
        ("Sunset", "Time after which the operation may be removed (RFC 8594)", only(REMOVED_ON)),
        ("Vary", "Request headers that the response depends on", json!({ "type": "string" })),
        ("WWW-Authenticate", "Challenge (RFC 6750)", pattern(r#"^Bearer realm="animal-store""#)),
        ("X-Content-Type-Options", "The content type must not be guessed", only("nosniff")),
        ("X-Request-Id", "Id of the request, also in the log", pattern("^[A-Za-z0-9._~-]{1,128}$")),
    ];
    let optional = [
        ("Accept-Encoding", "The supported encoding, if the request body was encoded", only("identity")),
        ("Content-Encoding", "Set if the client prefers gzip and the body has more than 1 KiB", only("gzip")),
        ("Idempotency-Replayed", "Set if an earlier request with the same key added the pet", only("true")),
        ("Link", "The next page, if more pets follow (RFC 8288)", next),
        (
            "RateLimit",
            "Requests left, and the seconds until there are more. Set if the rate of the API key is limited",
            quota,
        ),
        ("RateLimit-Policy", "Requests that are allowed in the seconds of a window (IETF draft)", policy),
        ("Retry-After", "Seconds to wait before a retry. Not set with `outcome_unknown`", seconds),
    ];
    let header = |(key, description, schema): (&str, &str, Value)| {
        let header = json!({ "description": description, "schema": schema });
        (key.to_owned(), serde_json::from_value::<Header>(header).expect("a valid header"))
    };
    let mut all: BTreeMap<_, _> = required.map(header).into();
    // utoipa supports this member of a header only as an extension.
    for header in all.values_mut() {
        header.extensions = Some(Extensions::from_iter([("required", true)]));
    }
    all.extend(optional.map(header));
    all
}

/// Creates a response with the headers of every response and more.
pub(super) fn response(description: &str, more_headers: &[&str], content: &Value) -> Value {
    let all = ["Cache-Control", "X-Content-Type-Options", "X-Request-Id"].iter().chain(more_headers);
    let headers = all.map(|&key| {
        let name = if key == SUCCESSOR { "Link" } else { key };
        (name.to_owned(), json!({ "$ref": format!("#/components/headers/{key}") }))
    });
    json!({ "description": description, "headers": headers.collect::<Map<_, _>>(), "content": content })
}

/// Creates the responses to these errors, one per status.
pub(super) fn error_responses(errors: &[ApiError], more_headers: &[&str]) -> Map<String, Value> {
    let mut by_status: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for error in errors.iter().map(ApiError::response) {
        by_status.entry(error.status).or_default().push(error);
    }
    let keys = headers();
    let key = |name: &HeaderName| keys.keys().find(|key| key.eq_ignore_ascii_case(name.as_str())).expect("a key");
    let mut responses = Map::new();
    for (status, errors) in by_status {
        let mut headers = more_headers.to_vec();
        if status == 429 {
            headers.extend(RATE_FIELDS);
        }
        headers.extend(errors.iter().filter_map(|error| error.header.as_ref()).map(|(name, _)| key(name).as_str()));
        let examples = errors.iter().enumerate().map(|(index, error)| {
            let earlier = errors[..index].iter().filter(|earlier| earlier.code == error.code).count();
            let name = if earlier == 0 { error.code.to_owned() } else { format!("{}-{}", error.code, earlier + 1) };
            (name, json!({ "value": error }))
        });
        let examples: Map<_, _> = examples.collect();
        let mut codes: Vec<_> = errors.iter().map(|error| format!("`{}`", error.code)).collect();
        codes.dedup();
        let content = json!({ JSON: { "schema": reference("Error"), "examples": examples } });
        responses.insert(status.to_string(), response(&codes.join(", "), &headers, &content));
    }
    responses
}
