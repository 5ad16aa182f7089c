//! The URL of `/v1` as clients see it. If it is set, the references in responses are absolute: clients that do not
//! resolve relative ones follow them.

use std::fmt;

use actix_web::HttpRequest;
use thiserror::Error;
use url::Url;

use crate::origins::is_web_origin;

/// The URL of `/v1` as clients see it, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

/// The text is not such a URL. The error does not repeat it: it can contain a password.
#[derive(Debug, PartialEq, Eq, Error)]
#[error(
    "must be the URL of the API, such as https://shop.example/v1: http or https, without a user, a query or a \
     fragment, and with /v1 at its end"
)]
pub struct PublicUrlError;

impl PublicUrl {
    /// Parses a URL. A slash at its end is dropped.
    ///
    /// # Errors
    /// [`PublicUrlError`] if it has another scheme than http and https, credentials, a query or a fragment, or if its
    /// path does not end in `/v1`.
    pub fn parse(text: &str) -> Result<Self, PublicUrlError> {
        let url = Url::parse(text).map_err(|_| PublicUrlError)?;
        let has_more = text.contains(['?', '#', '@']);
        let path = url.path();
        let is_v1 = path.strip_suffix('/').unwrap_or(path).ends_with("/v1");
        if has_more || !is_v1 || !is_web_origin(&url) {
            return Err(PublicUrlError);
        }
        let text = url.as_str();
        Ok(Self(text.strip_suffix('/').unwrap_or(text).to_owned()))
    }

    /// Returns a reference to the list of pets: the absolute one if the service was configured with a URL, otherwise this
    /// relative one, which is valid behind any base path.
    pub(crate) fn pets_or(request: &HttpRequest, relative: &str) -> String {
        match request.app_data::<Option<Self>>() {
            Some(Some(Self(url))) => format!("{url}/pets"),
            _ => relative.to_owned(),
        }
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_http_or_https_that_ends_in_v1_is_accepted_without_its_last_slash() {
        for (text, url) in [
            ("https://shop.example/v1", "https://shop.example/v1"),
            ("https://shop.example/v1/", "https://shop.example/v1"),
            ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
            ("HTTPS://Shop.example:443/v1", "https://shop.example/v1"),
            (
                "https://shop.example/a b/v1",
                "https://shop.example/a%20b/v1",
            ),
            ("https://shop.example/v1/v1", "https://shop.example/v1/v1"),
        ] {
            assert_eq!(PublicUrl::parse(text).unwrap().to_string(), url, "{text}");
        }
    }

    #[test]
    fn another_url_is_refused_without_repeating_it() {
        for text in [
            "",
            "v1",
            "/v1",
            "//shop.example/v1",
            "shop.example/v1",
            "https://",
            "https:///",
            "ftp://shop.example/v1",
            "file:///v1",
            "https://shop.example",
            "https://shop.example/",
            "https://v1",
            "https://shop.example/v10",
            "https://shop.example/V1",
            "https://shop.example/xv1",
            "https://shop.example/v1//",
            "https://shop.example/v1/pets",
            "https://shop.example/v1?",
            "https://shop.example/v1?a=/v1",
            "https://shop.example/v1#",
            "https://shop.example/#/v1",
            "https://user@shop.example/v1",
            "https://:secret@shop.example/v1",
            "https://@shop.example/v1",
            "https://*/v1",
            "https://${host}/v1",
            "https://shop.example:99999/v1",
        ] {
            assert_eq!(PublicUrl::parse(text), Err(PublicUrlError), "{text}");
        }
    }
}
