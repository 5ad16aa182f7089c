use std::{fmt, sync::Arc};

use thiserror::Error;

/// What people call an API key: 1 to 64 Unicode scalar values, at least one of them not white space, and none that
/// breaks a line or turns the direction of the text around it.
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
    /// It could make a line of a log look like another.
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
        } else if text.chars().any(is_control) {
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

fn is_control(character: char) -> bool {
    let separates_or_turns =
        matches!(character, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || separates_or_turns
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
        for control in ['\u{9b}', '\u{200f}', '\u{2028}', '\u{202e}', '\u{2066}'] {
            assert_eq!(ApiKeyLabel::parse(&format!("a{control}b")), Err(LabelError::ControlCharacter));
        }
    }
}
