//! The id of a request in its response and in the log: the client's `X-Request-Id` if it is safe to print.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const MAX_BYTES: usize = 128;

/// Returns the client's id or a new one (a UUID of version 7).
pub(super) fn get_or_create(headers: &HeaderMap) -> HeaderValue {
    match headers.get(X_REQUEST_ID) {
        Some(given) if is_safe(given.as_bytes()) => given.clone(),
        _ => {
            let mut buffer = Uuid::encode_buffer();
            let id = Uuid::now_v7().hyphenated().encode_lower(&mut buffer);
            HeaderValue::from_str(id).expect("a UUID is ASCII")
        }
    }
}

fn is_safe(id: &[u8]) -> bool {
    (1..=MAX_BYTES).contains(&id.len())
        && id
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._~:=/+@#-".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_for(given: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(X_REQUEST_ID, HeaderValue::from_bytes(given).unwrap());
        get_or_create(&headers).to_str().unwrap().to_owned()
    }

    #[test]
    fn an_id_that_is_safe_to_print_is_kept_and_any_other_is_replaced() {
        for good in [
            "a",
            "0AZ_az.~-9",
            "7F000001:8296_7F000001:1F90_65A0C3F1_0001:1B2C",
            "8e03978e-40d5-43e8-bc93-6894a57f9324#12",
            "Root=1-67891233-abcdef012345678912345678",
            "a/b+c==",
            "a@b",
            &"x".repeat(128),
        ] {
            assert_eq!(id_for(good.as_bytes()), good);
        }
        for bad in [
            "",
            "a b",
            "a\tb",
            "a,b",
            "a;b",
            "a%b",
            "a\"b",
            "{}",
            "<script>",
            "ü",
            &"x".repeat(129),
        ] {
            assert_eq!(id_for(bad.as_bytes()).len(), 36, "{bad:?}");
        }
        assert_eq!(id_for(b"a\xff").len(), 36);
    }
}
