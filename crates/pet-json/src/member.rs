//! A member of a JSON object, parsed once.

use std::fmt::Display;

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
    pub(crate) fn read<E: Display>(
        &mut self,
        json: &RawValue,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) {
        *self = match self {
            Self::Absent => match parse(json.get()) {
                Ok(value) => Self::Valid(value),
                Err(error) => Self::Invalid(error.to_string()),
            },
            Self::Valid(_) | Self::Invalid(_) => Self::Invalid("must be given once".to_owned()),
        };
    }

    /// Fails with the problem of the member.
    pub(crate) fn check(&self) -> Result<(), ValidationError> {
        match self {
            Self::Absent | Self::Valid(_) => Ok(()),
            Self::Invalid(problem) => {
                Err(ValidationError::new("invalid").with_message(problem.clone().into()))
            }
        }
    }

    pub(crate) fn value(self) -> Option<T> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Absent | Self::Invalid(_) => None,
        }
    }
}

impl<T> ValidateRequired for Member<T> {
    fn is_some(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}
