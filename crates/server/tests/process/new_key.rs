//! A key that a command has created, and the events that it has logged.

use crate::prelude::*;

/// A key that a command has created.
pub(crate) struct NewKey {
    pub(crate) token: String,
    pub(crate) id: String,
}

impl NewKey {
    /// The printed token and the logged id.
    #[track_caller]
    pub(crate) fn printed(exited: &Exited) -> Self {
        exited.assert_code(0);
        Self {
            token: only(&exited.stdout).clone(),
            id: text(&audited(exited), "api_key"),
        }
    }
}

#[track_caller]
pub(crate) fn text(event: &Value, member: &str) -> String {
    event[member].as_str().expect("a text").to_owned()
}

/// Returns the event of the audit log.
#[track_caller]
pub(crate) fn audited(exited: &Exited) -> Value {
    logged(exited, "target", "audit")
}

/// Returns the event of the log whose member has this value.
#[track_caller]
pub(crate) fn logged(exited: &Exited, member: &str, value: &str) -> Value {
    let lines = exited.stderr.iter();
    let mut events = lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let event = events.find(|event| event[member] == value);
    event.unwrap_or_else(|| panic!("no event {value}: {exited:?}"))
}
