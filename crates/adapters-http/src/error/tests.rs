use actix_web::{body::to_bytes, http::header::CONTENT_TYPE};

use super::*;

const SECRET: &str = "postgres://user:password@db";

/// One error of each of these kinds. The match has no `_`: a new kind does not compile until it is added.
macro_rules! one_of_each {
    ($($kind:ident $(($value:expr))?),+ $(,)?) => {{
        let all = vec![$(ApiError::$kind $(($value))?),+];
        for error in &all {
            match error {
                $(ApiError::$kind { .. })|+ => {}
            }
        }
        all
    }};
}

/// The errors that `docs/openapi.json` has as examples, and those of requests that reach no operation.
pub(crate) fn every_error() -> Vec<ApiError> {
    let mut all = one_of_each![
        InvalidBody("name must be a string; categoryId is required".into()),
        InvalidQuery("limit must be a whole number from 1 to 100".into()),
        InvalidHeader("Idempotency-Key must be sent once".into()),
        MalformedRequest,
        MissingApiKey,
        MalformedApiKey,
        UnknownApiKey,
        InsufficientScope(Scope::Read),
        PetNotFound,
        RouteNotFound,
        MethodNotAllowed("GET, HEAD"),
        RequestTimeout,
        PayloadTooLarge(16 * 1024),
        UnsupportedContentType("text/plain".into()),
        UnsupportedContentEncoding("gzip".into()),
        IdempotencyConflict,
        IdempotencyMismatch,
        Gone,
        RateLimited,
        TooManyAuthFailures(6),
        Internal(SECRET.into()),
        Unavailable(SECRET.into()),
        Overloaded(ExceededLimit::InFlight),
        OutcomeUnknown(SECRET.into()),
    ];
    all.push(ApiError::InsufficientScope(Scope::Write));
    all
}

#[tokio::test]
async fn every_error_has_the_body_of_the_interface_and_no_response_contains_the_cause() {
    for error in every_error() {
        let response = error.error_response();
        let row = error.response();
        assert_eq!(response.status(), row.status);
        let headers = response.headers();
        assert_eq!(headers.get(CONTENT_TYPE), Some(&JSON));
        assert!(!format!("{headers:?}").contains("postgres"), "{error:?}");
        let bytes = to_bytes(response.into_body()).await.expect("a body");
        let body: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        assert!(!body.to_string().contains("postgres"), "{error:?}");
        let expected = serde_json::json!({
            "code": row.code, "message": error.to_string(), "status": row.status
        });
        assert_eq!(body, expected);
    }
}

#[test]
fn the_documentation_lists_every_error_and_no_other() {
    let documented: Vec<&str> = include_str!("../../../../docs/api.md")
        .lines()
        .skip_while(|line| *line != "| status | code | when |")
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();

    let rows: Vec<String> = every_error()
        .iter()
        .map(ApiError::response)
        .map(|row| format!("| {} | `{}` |", row.status, row.code))
        .collect();
    for row in &rows {
        assert!(
            documented.iter().any(|line| line.starts_with(row)),
            "docs/api.md does not contain {row}"
        );
    }
    for line in documented {
        assert!(
            rows.iter().any(|row| line.starts_with(row)),
            "docs/api.md has a row without an error: {line}"
        );
    }
}

#[test]
fn only_an_error_that_is_safe_to_retry_has_a_retry_after_and_only_a_401_and_a_403_a_challenge() {
    for error in every_error() {
        let response = error.error_response();
        let safe = matches!(
            error,
            ApiError::IdempotencyConflict
                | ApiError::RateLimited
                | ApiError::TooManyAuthFailures(_)
                | ApiError::Unavailable(_)
                | ApiError::Overloaded(_)
        );
        let has = |name| response.headers().contains_key(name);
        assert_eq!(has(RETRY_AFTER), safe, "{error:?}");
        let refused = matches!(response.status().as_u16(), 401 | 403);
        assert_eq!(has(WWW_AUTHENTICATE), refused, "{error:?}");
    }
}
