use std::{fmt, sync::Arc};

use thiserror::Error;

/// Human-readable name of an API key: 1 to 64 Unicode scalar values. At least one is not white space, and none breaks a
/// line or changes the direction of the surrounding text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ApiKeyLabel(Arc<str>);

/// The text is not a valid label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a label has 1 to 64 characters, not only white space, and no control characters")]
pub struct ApiKeyLabelError;

impl ApiKeyLabel {
    /// Parses a label.
    ///
    /// # Errors
    /// [`ApiKeyLabelError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ApiKeyLabelError> {
        let is_valid =
            !text.trim().is_empty() && text.chars().count() <= 64 && !text.chars().any(is_control);
        if is_valid {
            Ok(Self(text.into()))
        } else {
            Err(ApiKeyLabelError)
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_control(character: char) -> bool {
    let breaks_line_or_direction = matches!(character, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
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
        for text in ["", " \u{a0}", &"é".repeat(65)] {
            assert_eq!(ApiKeyLabel::parse(text), Err(ApiKeyLabelError));
        }
        for control in [
            '\n', '\u{9b}', '\u{200f}', '\u{2028}', '\u{202e}', '\u{2066}',
        ] {
            assert_eq!(
                ApiKeyLabel::parse(&format!("a{control}b")),
                Err(ApiKeyLabelError)
            );
        }
    }
}
