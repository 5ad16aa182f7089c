use std::{borrow::Cow, fmt::Display};

use crate::error::Problems;

/// A member of a body or a parameter of a query: its value or what is wrong with it. It must not be given twice.
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
        self.parsed = if self.given {
            Err("must be given once".into())
        } else {
            parsed.map_err(|error| error.to_string().into())
        };
        self.given = true;
    }

    pub(super) fn problem(&self) -> Option<&Cow<'static, str>> {
        self.parsed.as_ref().err()
    }

    pub(super) fn into_result(self) -> Result<T, Cow<'static, str>> {
        self.parsed
    }

    /// Returns the value, or adds what is wrong with it to the problems.
    pub(super) fn take(self, name: &str, problems: &mut Problems) -> Option<T> {
        self.parsed.map_err(|problem| problems.push(name, &problem)).ok()
    }
}
