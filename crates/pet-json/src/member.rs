//! A member of a JSON object, parsed once.

use serde::Serialize;
use serde_json::value::RawValue;
use validator::{ValidateRequired, ValidationError};

/// What an object has for a member. `validator` copies a refused one into its error, therefore it is `Serialize`.
#[derive(Default, Serialize)]
pub(crate) enum Member<T> {
    #[default]
    Absent,
    #[serde(skip)]
    Valid(T),
    /// With the problem.
    Invalid(String),
}

impl<T> Member<T> {
    /// Parses a value that the object gives for this member.
    pub(crate) fn read(&mut self, json: &RawValue, parse: fn(&str) -> Result<T, String>) {
        if self.is_some() {
            *self = Self::Invalid("must be given once".to_owned());
            return;
        }
        *self = match parse(json.get()) {
            Ok(value) => Self::Valid(value),
            Err(problem) => Self::Invalid(problem),
        };
    }

    /// Fails with the problem of the member.
    pub(crate) fn check(&self) -> Result<(), ValidationError> {
        let Self::Invalid(problem) = self else {
            return Ok(());
        };
        let problem = problem.clone();
        let error = ValidationError::new("invalid");
        Err(error.with_message(problem.into()))
    }

    pub(crate) fn value(self) -> Option<T> {
        if let Self::Valid(value) = self {
            Some(value)
        } else {
            None
        }
    }
}

impl<T> ValidateRequired for Member<T> {
    fn is_some(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}
