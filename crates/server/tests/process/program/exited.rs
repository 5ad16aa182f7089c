//! The outcome of a process.

use std::fmt::Debug;

use serde_json::Value;

/// A process that has exited.
#[derive(Debug, Default)]
pub(crate) struct Exited {
    /// `None` if a signal ended the process.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
}

impl Exited {
    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Asserts a success without a line on standard error.
    #[track_caller]
    pub(crate) fn assert_success(&self) -> &Self {
        assert!(self.stderr.is_empty(), "{self:#?}");
        self.assert_code(0)
    }

    /// Asserts this exit code, nothing on standard output, and each of these texts on standard error.
    #[track_caller]
    pub(crate) fn assert_refused(&self, code: i32, texts: &[&str]) -> &Self {
        assert!(
            self.stdout.is_empty() && !self.stderr.is_empty(),
            "{self:#?}"
        );
        for text in texts {
            self.assert_has(text);
        }
        self.assert_code(code)
    }

    /// Asserts this exit code, and one line on standard error with each of these texts.
    #[track_caller]
    pub(crate) fn assert_error(&self, code: i32, texts: &[&str]) -> &Self {
        let line = only(&self.stderr);
        assert!(texts.iter().all(|text| line.contains(text)), "{self:#?}");
        self.assert_code(code)
    }

    /// Asserts that this text is in the output.
    #[track_caller]
    pub(crate) fn assert_has(&self, text: &str) -> &Self {
        assert!(self.output().contains(text), "no {text}: {self:#?}");
        self
    }

    /// Asserts that this text is not in the output.
    #[track_caller]
    pub(crate) fn assert_lacks(&self, text: &str) -> &Self {
        assert!(!self.output().contains(text), "{text}: {self:#?}");
        self
    }

    /// Standard output and standard error.
    pub(crate) fn output(&self) -> String {
        [&self.stdout[..], &self.stderr[..]].concat().join("\n")
    }

    /// Events of the log. Fails if a line of standard output is not JSON.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let event = |line: &String| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.stdout.iter().map(event).collect()
    }

    /// The events of the log with this message.
    #[track_caller]
    pub(crate) fn events_of(&self, message: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["message"] == message);
        events
    }

    /// The lines of requests to the API.
    #[track_caller]
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.events_of("request")
    }
}

/// Returns the only item.
#[track_caller]
pub(crate) fn only<T: Debug>(items: &[T]) -> &T {
    let [item] = items else {
        panic!("not one: {items:?}")
    };
    item
}

/// Asserts that an object has these members.
#[track_caller]
pub(crate) fn assert_members(object: &Value, expected: &Value) {
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(object[name], *value, "{name} of {object}");
    }
}
