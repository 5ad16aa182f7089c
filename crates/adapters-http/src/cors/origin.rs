use std::str::FromStr;

use thiserror::Error;
use url::Url;

/// Origin of a page: scheme, host and port, as browsers write them (RFC 6454).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// The text is not an [`Origin`].
#[derive(Debug, PartialEq, Eq, Error)]
pub enum OriginError {
    /// The text is not an `http` or `https` URL with a valid host.
    #[error("the text is not an origin")]
    NotAnOrigin,
    /// Browsers write the origin in this form.
    #[error("browsers write the origin as {0}")]
    WrittenAs(String),
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let url = Url::parse(text).map_err(|_| OriginError::NotAnOrigin)?;
        match url.origin().ascii_serialization() {
            _ if !is_web_origin(&url) => Err(OriginError::NotAnOrigin),
            written if written == text => Ok(Self(written)),
            written => Err(OriginError::WrittenAs(written)),
        }
    }
}

impl Origin {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether a page can have this origin. A URL can have another scheme, or a host such as `*.example` or
/// `${host}`.
fn is_web_origin(url: &Url) -> bool {
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[:]".contains(&byte);
    matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| host.bytes().all(is_host_byte))
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
            "http://shop.example:65535",
        ] {
            assert_eq!(text.parse(), Ok(Origin(text.to_owned())));
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
            ("https://b\u{fc}cher.example", "https://xn--bcher-kva.example"),
            ("http://[0:0::1]", "http://[::1]"),
            ("http://127.1", "http://127.0.0.1"),
            (" https://shop.example", "https://shop.example"),
        ] {
            assert_eq!(text.parse::<Origin>(), Err(OriginError::WrittenAs(written.to_owned())), "{text:?}");
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
            "https://",
            "https://shop.example:65536",
            "https://[::1",
            "https://256.0.0.1",
            "file:///pages",
            "data:text/html,x",
            "chrome-extension://abcdefgh",
            "ws://shop.example",
            "https://*",
            "https://*.shop.example",
            "https://${host}",
            "https://{host}:3000",
            "https://\"shop\"",
        ] {
            assert_eq!(text.parse::<Origin>(), Err(OriginError::NotAnOrigin), "{text:?}");
        }
    }
}
