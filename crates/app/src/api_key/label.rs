use std::{fmt, sync::Arc};

use thiserror::Error;

/// Human-readable name of an API key: 1 to 64 Unicode scalar values. At least one is not white space, and none
/// [`is_deceptive`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ApiKeyLabel(Arc<str>);

/// The text is not a valid label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a label has 1 to 64 characters, not only white space, and none that is a control character, breaks a line, is \
     invisible or changes the direction of text"
)]
pub struct ApiKeyLabelError;

impl ApiKeyLabel {
    /// Parses a label.
    ///
    /// # Errors
    /// [`ApiKeyLabelError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ApiKeyLabelError> {
        let is_valid = !text.trim().is_empty()
            && text.chars().count() <= 64
            && !text.chars().any(is_deceptive);
        if is_valid {
            Ok(Self(text.into()))
        } else {
            Err(ApiKeyLabelError)
        }
    }

    /// Returns a stored label. An earlier release may have accepted characters that are refused today: they are
    /// escaped.
    ///
    /// # Errors
    /// [`ApiKeyLabelError`] for a blank text, which no release accepts.
    pub fn from_stored(text: &str) -> Result<Self, ApiKeyLabelError> {
        if text.trim().is_empty() {
            return Err(ApiKeyLabelError);
        }
        let escape = |character: char| match character {
            deceptive if is_deceptive(deceptive) => deceptive.escape_unicode().to_string(),
            character => character.into(),
        };
        Ok(Self(text.chars().map(escape).collect::<String>().into()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a character in a line of a log or a table makes it look like another line: a control character, a line or
/// paragraph separator, one with the property `Bidi_Control`, U+200B or U+FEFF.
pub fn is_deceptive(character: char) -> bool {
    let is_bidi_control = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let breaks_line = matches!(character, '\u{2028}' | '\u{2029}');
    let is_invisible = matches!(character, '\u{200b}' | '\u{feff}');
    character.is_control() || is_bidi_control || breaks_line || is_invisible
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
    }

    #[test]
    fn a_label_with_a_deceptive_character_is_refused_and_a_stored_one_is_escaped() {
        let ranges = [
            '\0'..='\u{1f}',
            '\u{7f}'..='\u{9f}',
            '\u{61c}'..='\u{61c}',
            '\u{200b}'..='\u{200b}',
            '\u{200e}'..='\u{200f}',
            '\u{2028}'..='\u{202e}',
            '\u{2066}'..='\u{2069}',
            '\u{feff}'..='\u{feff}',
        ];
        let is_refused = |character| ranges.iter().any(|range| range.contains(&character));
        for character in '\0'..='\u{ffff}' {
            let text = format!("a{character}b");
            let is_valid = ApiKeyLabel::parse(&text).is_ok();
            assert_eq!(is_valid, !is_refused(character), "{character:?}");
            let stored = ApiKeyLabel::from_stored(&text).unwrap();
            assert_eq!(stored.as_str() == text, is_valid, "{character:?}");
            assert!(ApiKeyLabel::parse(stored.as_str()).is_ok(), "{character:?}");
        }
        let stored = ApiKeyLabel::from_stored("a\u{61c}b").unwrap();
        assert_eq!(stored.as_str(), "a\\u{61c}b");
        assert_eq!(ApiKeyLabel::from_stored(" "), Err(ApiKeyLabelError));
    }
}
