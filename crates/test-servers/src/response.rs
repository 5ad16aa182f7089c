use std::borrow::Cow;

use serde_json::{Value, json};

/// An HTTP response, byte for byte.
#[derive(Debug)]
pub struct Response {
    /// The start of the request, for the messages of failed assertions.
    request: String,
    /// The status code.
    pub status: u16,
    /// The status line and the headers, with their line ends.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// Takes the first response from the received bytes, if it is complete.
    pub(crate) fn take(received: &mut Vec<u8>, request: &str, to_head: bool) -> Option<Self> {
        let end = received.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(received[..end].to_vec()).expect("a head is ASCII");
        let status = head
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.get(2..5)?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no response begins with {head:?}"));
        let mut response = Self {
            request: request.to_owned(),
            status,
            head,
            body: Vec::new(),
        };
        let has_body = !to_head && status >= 200 && status != 204 && status != 304;
        let length = if has_body {
            response
                .header("Content-Length")
                .expect("a length")
                .parse()
                .expect("a length")
        } else {
            0
        };
        response.body = received.get(end..end + length)?.to_vec();
        received.drain(..end + length);
        Some(response)
    }

    fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name, value.trim()))
    }

    /// The value of a header, which the response must have at most once.
    #[track_caller]
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self
            .headers()
            .filter(|(given, _)| given.eq_ignore_ascii_case(name));
        let (_, value) = values.next()?;
        assert!(values.next().is_none(), "{name} is given twice: {self:?}");
        Some(value)
    }

    /// The names of all headers, in lower case.
    #[must_use]
    pub fn header_names(&self) -> Vec<String> {
        self.headers()
            .map(|(name, _)| name.to_ascii_lowercase())
            .collect()
    }

    /// The items of a header that holds a list, sorted and in lower case. Empty if the header is absent.
    #[track_caller]
    #[must_use]
    pub fn items(&self, name: &str) -> Vec<String> {
        let list = self.header(name).unwrap_or_default().to_ascii_lowercase();
        let mut items: Vec<_> = list
            .split(',')
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty())
            .collect();
        items.sort_unstable();
        items
    }

    /// Returns whether the server announces the end of the connection.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.header("Connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The body as text.
    #[track_caller]
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    /// The body as JSON, which its media type must declare.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        self.assert_header("Content-Type", Some("application/json"));
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The start of the body, for the messages of failed assertions.
    fn excerpt(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body[..self.body.len().min(2000)])
    }

    /// Asserts the status code.
    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{}\n{}", self.request, self.excerpt());
        self
    }

    /// Asserts the value of a header, or its absence.
    #[track_caller]
    pub fn assert_header(&self, name: &str, value: Option<&str>) -> &Self {
        assert_eq!(
            self.header(name),
            value,
            "{name} of {}\n{}\n{}",
            self.request,
            self.head,
            self.excerpt()
        );
        self
    }

    /// Asserts an Error body: exactly `code`, `message` and `status`. Returns the message.
    #[track_caller]
    pub fn assert_error(&self, status: u16, code: &str) -> String {
        let body = self.assert_status(status).json();
        let message = body["message"]
            .as_str()
            .unwrap_or_else(|| panic!("a message: {body}"));
        assert_eq!(
            body,
            json!({ "code": code, "message": message, "status": status }),
            "{}",
            self.request
        );
        assert!(!message.is_empty(), "{}", self.request);
        message.to_owned()
    }

    /// The ids of a list of pets, in its order.
    #[track_caller]
    #[must_use]
    pub fn ids(&self) -> Vec<i64> {
        let pets = self.assert_status(200).json();
        let pets = pets.as_array().expect("an array").iter();
        pets.map(|pet| pet["id"].as_i64().expect("an id")).collect()
    }

    /// Asserts that this response to HEAD equals the response to GET without its body.
    #[track_caller]
    pub fn assert_head_of(&self, get: &Self) {
        self.assert_status(get.status)
            .assert_header("Content-Length", Some(&get.body.len().to_string()));
        assert!(self.body.is_empty(), "{}", self.request);
        let comparable = |response: &Self| {
            let headers = response.headers();
            let mut headers: Vec<_> = headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            headers.retain(|(name, _)| name != "date" && name != "x-request-id");
            headers.sort_unstable();
            headers
        };
        assert_eq!(comparable(self), comparable(get), "{}", self.request);
    }
}
