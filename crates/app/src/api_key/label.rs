use std::{fmt, sync::Arc};

use thiserror::Error;

/// What people call an API key: 1 to 64 Unicode scalar values, at least one of them not white space, and no control
/// characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyLabel(Arc<str>);

/// Why a text is no label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LabelError {
    /// There is nothing to read in it.
    #[error("a label must not be blank")]
    Blank,
    /// It is too long.
    #[error("a label must have at most 64 characters")]
    TooLong,
    /// It could break a line of a log.
    #[error("a label must not have control characters")]
    ControlCharacter,
}

impl ApiKeyLabel {
    /// The label that this text is.
    ///
    /// # Errors
    /// [`LabelError`] where it is none.
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        if text.trim().is_empty() {
            Err(LabelError::Blank)
        } else if text.chars().count() > 64 {
            Err(LabelError::TooLong)
        } else if text.chars().any(char::is_control) {
            Err(LabelError::ControlCharacter)
        } else {
            Ok(Self(text.into()))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApiKeyLabel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_kept_as_it_was_given() {
        for text in ["x", " staging shop ", "Ωmega", &"é".repeat(64)] {
            assert_eq!(ApiKeyLabel::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn what_nobody_could_read_is_no_label() {
        assert_eq!(ApiKeyLabel::parse(""), Err(LabelError::Blank));
        assert_eq!(ApiKeyLabel::parse(" \u{a0}"), Err(LabelError::Blank));
        assert_eq!(ApiKeyLabel::parse(&"é".repeat(65)), Err(LabelError::TooLong));
        assert_eq!(ApiKeyLabel::parse("a\nb"), Err(LabelError::ControlCharacter));
        assert_eq!(ApiKeyLabel::parse("a\u{9b}b"), Err(LabelError::ControlCharacter));
    }
}
