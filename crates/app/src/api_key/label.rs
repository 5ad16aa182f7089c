use std::{fmt, sync::Arc};

use thiserror::Error;

/// Human-readable name of an API key: 1 to 64 Unicode scalar values. At least one is not white space, and none breaks a
/// line or changes the direction of the surrounding text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyLabel(Arc<str>);

/// The rule that a text breaks, so that it is not a valid label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ApiKeyLabelError {
    /// The text is empty or consists of white space.
    #[error("a label must not be blank")]
    Blank,
    /// The text has more than 64 characters.
    #[error("a label must have at most 64 characters")]
    TooLong,
    /// The text contains a character that could forge a line of the log.
    #[error("a label must not contain control characters")]
    ControlCharacter,
}

impl ApiKeyLabel {
    /// Parses a label.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, ApiKeyLabelError> {
        if text.trim().is_empty() {
            Err(ApiKeyLabelError::Blank)
        } else if text.chars().count() > 64 {
            Err(ApiKeyLabelError::TooLong)
        } else if text.chars().any(is_control) {
            Err(ApiKeyLabelError::ControlCharacter)
        } else {
            Ok(Self(text.into()))
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_control(character: char) -> bool {
    let breaks_line_or_direction =
        matches!(character, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || breaks_line_or_direction
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
            let label = ApiKeyLabel::parse(text).unwrap();
            assert_eq!((label.as_str(), label.to_string().as_str()), (text, text));
        }
    }

    #[test]
    fn a_blank_too_long_or_unprintable_label_is_refused() {
        assert_eq!(ApiKeyLabel::parse(""), Err(ApiKeyLabelError::Blank));
        assert_eq!(ApiKeyLabel::parse(" \u{a0}"), Err(ApiKeyLabelError::Blank));
        assert_eq!(ApiKeyLabel::parse(&"é".repeat(65)), Err(ApiKeyLabelError::TooLong));
        assert_eq!(ApiKeyLabel::parse("a\nb"), Err(ApiKeyLabelError::ControlCharacter));
        for control in ['\u{9b}', '\u{200f}', '\u{2028}', '\u{202e}', '\u{2066}'] {
            assert_eq!(ApiKeyLabel::parse(&format!("a{control}b")), Err(ApiKeyLabelError::ControlCharacter));
        }
    }
}
