//! An HTTP client that sends what it is told and returns what it got.

use std::{borrow::Cow, time::Duration};

use serde_json::Value;
use ureq::{Agent, http};

/// A request to be sent.
pub(crate) struct Request {
    builder: http::request::Builder,
    body: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Response {
    /// The request, for the messages of failed assertions.
    sent: String,
    pub(crate) status: u16,
    headers: http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, uri: String) -> Self {
        Self { builder: http::Request::builder().method(method).uri(uri), body: Vec::new() }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.builder = self.builder.header(name, value);
        self
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    /// The body without a declared length.
    pub(crate) fn chunked(self, body: impl AsRef<[u8]>) -> Self {
        self.header("Transfer-Encoding", "chunked").body(body)
    }

    pub(crate) fn json(self, body: impl AsRef<[u8]>) -> Self {
        self.header("Content-Type", "application/json").body(body)
    }

    #[track_caller]
    pub(crate) fn send(self) -> Response {
        let agent: Agent = Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(Duration::from_secs(10)))
            .build()
            .into();
        let sent = self.described();
        let response = if self.body.is_empty() {
            agent.run(self.builder.body(()).expect("a request"))
        } else {
            agent.run(self.builder.body(&self.body[..]).expect("a request"))
        };
        let (parts, mut body) = response.expect("an answer").into_parts();
        let body = body.read_to_vec().expect("a body");
        Response { sent, status: parts.status.as_u16(), headers: parts.headers, body }
    }

    fn described(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(200)]);
        format!("{:?} {body}", self.builder)
    }
}

impl Response {
    /// The header's value, which must be given at most once.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?;
        assert!(values.next().is_none(), "{name} is given twice: {self:?}");
        Some(value.to_str().expect("ASCII"))
    }

    /// The names of all headers, in lower case.
    pub(crate) fn header_names(&self) -> Vec<&str> {
        self.headers.keys().map(http::HeaderName::as_str).collect()
    }

    /// The items of a header that holds a list, sorted; none where it is not given.
    #[track_caller]
    pub(crate) fn items(&self, name: &str) -> Vec<String> {
        let list = self.header(name).unwrap_or_default();
        let mut items: Vec<_> =
            list.split(',').map(|item| item.trim().to_ascii_lowercase()).filter(|item| !item.is_empty()).collect();
        items.sort_unstable();
        items
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    /// The body for the messages of failed assertions, whatever it is.
    fn shown(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body[..self.body.len().min(2000)])
    }

    #[track_caller]
    pub(crate) fn assert_status(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{}\n{}", self.sent, self.shown());
        self
    }

    #[track_caller]
    pub(crate) fn assert_header(&self, name: &str, value: Option<&str>) -> &Self {
        assert_eq!(self.header(name), value, "{name} of {}\n{}", self.sent, self.shown());
        self
    }

    /// The ids of a list, in its order.
    #[track_caller]
    pub(crate) fn ids(&self) -> Vec<i64> {
        let pets = self.assert_status(200).json();
        pets.as_array().expect("an array").iter().map(|pet| pet["id"].as_i64().expect("an id")).collect()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// The Error body: exactly `code`, `message` and `status`, of the interface's types, and the status and code
    /// that are expected. Returns the message.
    #[track_caller]
    pub(crate) fn assert_error(&self, status: u16, code: &str) -> String {
        let body = self.assert_status(status).json();
        let members = body.as_object().expect("an object");
        assert_eq!(members.len(), 3, "{body}");
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["status"], status, "{body}");
        let message = body["message"].as_str().expect("a message");
        assert!(!message.is_empty(), "{}", self.sent);
        message.to_owned()
    }

    /// The answer to HEAD where this is the one to GET: all the same, except for the body.
    #[track_caller]
    pub(crate) fn assert_head_of(&self, get: &Self) {
        self.assert_status(get.status);
        assert!(self.body.is_empty(), "{}", self.sent);
        assert_eq!(self.header("Content-Length"), Some(get.body.len().to_string().as_str()), "{}", self.sent);
        let comparable = |response: &Self| {
            let mut headers = response.headers.clone();
            headers.remove("Date");
            headers.remove("X-Request-Id");
            headers
        };
        assert_eq!(comparable(self), comparable(get), "{}", self.sent);
    }

    /// A 400 that names these members or parameters, each with what is wrong with it. Returns the message.
    #[track_caller]
    pub(crate) fn assert_names(&self, code: &str, names: &[&str]) -> String {
        let message = self.assert_error(400, code);
        let found: Vec<_> = message.split("; ").filter_map(|problem| problem.split(' ').next()).collect();
        assert_eq!(found, names, "{message:?} for {}", self.sent);
        message
    }
}
