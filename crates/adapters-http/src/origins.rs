//! The origins whose pages may use the interface.

use actix_web::http::header::{HeaderMap, HeaderValue, ORIGIN};
use thiserror::Error;
use url::Url;

/// Origins whose pages may use the interface, besides its own origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedOrigins {
    /// Every origin.
    Any,
    /// These origins.
    These(Vec<String>),
}

/// These texts are not origins. The error does not repeat them: each can be a URL with a password.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("{}", .0.join("; "))]
pub struct AllowedOriginsError(Vec<String>);

impl AllowedOrigins {
    /// Parses origins (RFC 6454), or a `*` alone: every origin. `None`: there are none.
    ///
    /// # Errors
    /// [`AllowedOriginsError`] with the number of each other text, and what is expected instead.
    pub fn parse(texts: &[String]) -> Result<Option<Self>, AllowedOriginsError> {
        if texts == ["*"] {
            return Ok(Some(Self::Any));
        }
        let mut problems = Vec::new();
        for (text, number) in texts.iter().zip(1..) {
            if let Some(expected) = problem(text) {
                problems.push(format!("number {number} must be {expected}"));
            }
        }
        if problems.is_empty() {
            Ok((!texts.is_empty()).then(|| Self::These(texts.to_vec())))
        } else {
            Err(AllowedOriginsError(problems))
        }
    }

    /// Returns the value of `Access-Control-Allow-Origin`. `None`: the origin may not read the response.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        match self {
            Self::Any => Some(HeaderValue::from_static("*")),
            Self::These(origins) if origins.iter().any(|allowed| origin == allowed) => {
                Some(origin.clone())
            }
            Self::These(_) => None,
        }
    }
}

/// Returns what is expected instead of a text, unless it is an origin as browsers write it: scheme, host and port.
fn problem(text: &str) -> Option<String> {
    let origin = Url::parse(text)
        .ok()
        .filter(is_web_origin)
        .map(|url| url.origin().ascii_serialization());
    match origin {
        Some(written) if written == text => None,
        Some(written) => Some(format!("{written:?}, as browsers send it")),
        None => Some("an origin such as https://shop.example".to_owned()),
    }
}

/// Returns whether a page can have this origin. A URL can have another scheme, or a host such as `*.example` or
/// `${host}`.
pub(crate) fn is_web_origin(url: &Url) -> bool {
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[:]".contains(&byte);
    let Some(host) = url.host_str() else {
        return false;
    };
    matches!(url.scheme(), "http" | "https") && host.bytes().all(is_host_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port_as_browsers_write_them() {
        for text in [
            "https://shop.example",
            "http://shop.example",
            "https://shop.example:80",
            "http://localhost:3000",
            "http://[::1]:8000",
            "https://xn--bcher-kva.example",
            "https://a-b.c_d.example",
            "https://shop.example.",
        ] {
            assert_eq!(problem(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_error_for_another_form_contains_the_form_of_browsers() {
        for (text, written) in [
            ("https://shop.example/", "https://shop.example"),
            ("https://shop.example:443", "https://shop.example"),
            ("http://shop.example:08080", "http://shop.example:8080"),
            ("https://Shop.Example", "https://shop.example"),
            ("https://user:secret@shop.example", "https://shop.example"),
            (
                "https://b\u{fc}cher.example",
                "https://xn--bcher-kva.example",
            ),
            ("http://[0:0::1]", "http://[::1]"),
            (" https://shop.example", "https://shop.example"),
        ] {
            let expected = format!("{written:?}, as browsers send it");
            assert_eq!(problem(text), Some(expected));
        }
    }

    #[test]
    fn a_text_without_a_web_origin_or_with_an_invalid_host_is_refused() {
        for text in [
            "",
            "*",
            "null",
            "shop.example",
            "shop.example:8080",
            "file:///pages",
            "ws://shop.example",
            "https://*",
            "https://*.shop.example",
            "https://${host}",
            "https://\"shop\"",
            "user:secret@shop.example",
        ] {
            let expected = "an origin such as https://shop.example";
            assert_eq!(problem(text).as_deref(), Some(expected), "{text:?}");
        }
    }
}
