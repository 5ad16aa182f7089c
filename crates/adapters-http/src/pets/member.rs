use std::{borrow::Cow, fmt::Display, mem::replace};

use crate::error::Problems;

/// A member of a body or a parameter of a query: its value or its problem. It must not be given twice.
pub(super) struct Member<T> {
    given: bool,
    parsed: Result<T, Cow<'static, str>>,
}

impl<T> Member<T> {
    pub(super) fn required() -> Self {
        Self { given: false, parsed: Err("is required".into()) }
    }

    pub(super) fn optional() -> Self
    where
        T: Default,
    {
        Self { given: false, parsed: Ok(T::default()) }
    }

    /// Sets the value of one occurrence in the request.
    pub(super) fn set<E: Display>(&mut self, parsed: Result<T, E>) {
        let parsed = parsed.map_err(|error| error.to_string().into());
        self.parsed = if replace(&mut self.given, true) { Err("must be given once".into()) } else { parsed };
    }

    pub(super) fn problem(&self) -> Option<&Cow<'static, str>> {
        self.parsed.as_ref().err()
    }

    /// Returns the value, or adds its problem to the problems.
    pub(super) fn take(self, name: &str, problems: &mut Problems) -> Option<T> {
        self.parsed.map_err(|problem| problems.push(name, &problem)).ok()
    }

    /// Returns the value of a member without a problem.
    pub(super) fn into_value(self) -> T {
        self.parsed.expect("the member is valid")
    }
}
