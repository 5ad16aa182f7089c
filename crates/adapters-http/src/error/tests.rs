use actix_web::body::to_bytes;

use super::*;

const SECRET: &str = "postgres://user:password@db";

/// One of each.
fn every_error() -> Vec<ApiError> {
    let all = vec![
        ApiError::InvalidBody(Problems::one("name is required")),
        ApiError::InvalidQuery(Problems::one("limit must be given once")),
        ApiError::InvalidHeader(Problems::one("Idempotency-Key must be sent once")),
        ApiError::MalformedRequest,
        ApiError::MissingApiKey,
        ApiError::MalformedApiKey,
        ApiError::UnknownApiKey,
        ApiError::InsufficientScope(Scope::Read),
        ApiError::InsufficientScope(Scope::Write),
        ApiError::PetNotFound,
        ApiError::RouteNotFound,
        ApiError::MethodNotAllowed("GET, HEAD"),
        ApiError::RequestTimeout,
        ApiError::PayloadTooLarge(16),
        ApiError::UnsupportedContentType,
        ApiError::UnsupportedContentEncoding,
        ApiError::IdempotencyConflict,
        ApiError::IdempotencyMismatch,
        ApiError::Internal(SECRET.into()),
        ApiError::Unavailable(SECRET.into()),
        ApiError::Overloaded,
        ApiError::OutcomeUnknown(SECRET.into()),
    ];
    // Without `_`: whoever adds an error has to come here, and adds it above.
    for error in &all {
        match error {
            ApiError::InvalidBody(_)
            | ApiError::InvalidQuery(_)
            | ApiError::InvalidHeader(_)
            | ApiError::MalformedRequest
            | ApiError::MissingApiKey
            | ApiError::MalformedApiKey
            | ApiError::UnknownApiKey
            | ApiError::InsufficientScope(_)
            | ApiError::PetNotFound
            | ApiError::RouteNotFound
            | ApiError::MethodNotAllowed(_)
            | ApiError::RequestTimeout
            | ApiError::PayloadTooLarge(_)
            | ApiError::UnsupportedContentType
            | ApiError::UnsupportedContentEncoding
            | ApiError::IdempotencyConflict
            | ApiError::IdempotencyMismatch
            | ApiError::Internal(_)
            | ApiError::Unavailable(_)
            | ApiError::Overloaded
            | ApiError::OutcomeUnknown(_) => {}
        }
    }
    all
}

async fn body(error: &ApiError) -> String {
    let bytes = to_bytes(error.error_response().into_body()).await.expect("a body");
    String::from_utf8(bytes.into()).expect("UTF-8")
}

#[tokio::test]
async fn every_error_has_the_body_of_the_interface() {
    for error in every_error() {
        let response = error.error_response();
        let body: serde_json::Value = serde_json::from_str(&body(&error).await).expect("JSON");

        assert_eq!(response.status(), error.status());
        assert_eq!(
            response.headers().get(header::CONTENT_TYPE).map(header::HeaderValue::as_bytes),
            Some(&b"application/json"[..])
        );
        assert_eq!(
            body,
            serde_json::json!({ "code": error.code(), "message": error.message(), "status": error.status().as_u16() })
        );
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

    for error in every_error() {
        let row = format!("| {} | `{}` |", error.status().as_u16(), error.code());
        assert!(documented.iter().any(|line| line.starts_with(&row)), "docs/api.md lacks the row {row}");
    }
    for row in documented {
        let known =
            |error: &ApiError| row.starts_with(&format!("| {} | `{}` |", error.status().as_u16(), error.code()));
        assert!(every_error().iter().any(known), "docs/api.md has a row for no error: {row}");
    }
}

#[tokio::test]
async fn nothing_of_a_cause_reaches_the_client() {
    for error in every_error() {
        let response = error.error_response();
        assert!(!body(&error).await.contains("postgres"), "{error:?}");
        assert!(response.headers().iter().all(|(_, value)| !value.as_bytes().starts_with(b"postgres")));
    }
}

#[test]
fn a_client_is_told_when_to_try_again_only_where_that_does_no_harm() {
    for error in every_error() {
        let retry_after = error.error_response().headers().contains_key(header::RETRY_AFTER);
        let harmless = matches!(error, ApiError::IdempotencyConflict | ApiError::Unavailable(_) | ApiError::Overloaded);
        assert_eq!(retry_after, harmless, "{error:?}");
    }
}

#[test]
fn every_401_and_403_carries_a_challenge_and_nothing_else_does() {
    for error in every_error() {
        let challenge = error.error_response().headers().contains_key(header::WWW_AUTHENTICATE);
        let expected = matches!(error.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        assert_eq!(challenge, expected, "{error:?}");
    }
}
