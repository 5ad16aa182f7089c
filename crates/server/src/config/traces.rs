use url::Url;

use super::{
    key::{Key, keys},
    values::{Values, optional},
};

keys! {
    ENDPOINT: new("traces.endpoint", "",
        "URL to which traces are sent as OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`; see \
         [traces](operations/run.md#traces). Empty: traces are off.");
    SAMPLE_RATIO: new("traces.sample_ratio", "0.01",
        "Share of the requests that are traced, from 0 to 1. A request whose `traceparent` is not sampled is never \
         traced.");
}

/// The export of traces.
#[derive(Debug)]
pub(crate) struct TracesConfig {
    pub(crate) endpoint: Option<Url>,
    sample_ratio: f64,
}

impl TracesConfig {
    pub(super) fn read(values: &mut Values) -> Self {
        Self { endpoint: values.read(&ENDPOINT, optional(endpoint)), sample_ratio: values.read(&SAMPLE_RATIO, ratio) }
    }

    /// Returns the share of the requests that are traced. `None` if traces are off.
    pub(crate) fn sampled(&self) -> Option<f64> {
        self.endpoint.as_ref().map(|_| self.sample_ratio)
    }
}

/// Refuses everything that can contain a secret: the URL is shown.
fn endpoint(text: &str) -> Result<Url, String> {
    let plain = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    let url = Url::parse(text).ok().filter(plain);
    url.ok_or_else(|| {
        "a URL such as http://127.0.0.1:4318/v1/traces, without user, password, query and fragment".to_owned()
    })
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "a number from 0 to 1, such as 0.01".to_owned())
}
