use thiserror::Error;

/// Name of a pet: 1 to [`PetName::MAX_CHARS`] Unicode scalar values, at least one of them not white space, and no
/// control characters. The name is stored exactly as given: it is neither trimmed nor normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PetName(Box<str>);

/// The rule that a text breaks, so that it is not a valid name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PetNameError {
    /// The text is empty or consists of white space.
    #[error("must not be blank")]
    Blank,
    /// The text has more than [`PetName::MAX_CHARS`] Unicode scalar values.
    #[error("must have at most {} characters", PetName::MAX_CHARS)]
    TooLong,
    /// The text contains a control character (Unicode category Cc), for example U+0000.
    #[error("must not contain control characters")]
    ControlCharacter,
}

impl PetName {
    /// Maximum length in Unicode scalar values.
    pub const MAX_CHARS: usize = 255;

    /// Parses a name.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, PetNameError> {
        if text.chars().any(char::is_control) {
            return Err(PetNameError::ControlCharacter);
        }
        if text.chars().all(char::is_whitespace) {
            return Err(PetNameError::Blank);
        }
        if text.chars().nth(Self::MAX_CHARS).is_some() {
            return Err(PetNameError::TooLong);
        }
        Ok(Self(text.into()))
    }

    /// Returns the name exactly as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_has_1_to_255_scalar_values_of_any_width() {
        for character in ["a", "é", "ß", "猫", "🐈"] {
            assert_eq!(PetName::parse(character).unwrap().as_str(), character);
            assert!(PetName::parse(&character.repeat(255)).is_ok());
            assert_eq!(PetName::parse(&character.repeat(256)), Err(PetNameError::TooLong));
        }
    }

    #[test]
    fn a_name_is_kept_exactly_as_given() {
        for name in [" Rex ", "e\u{301}", "\u{e9}", "👩‍🚀", "\u{feff}x", "a\u{a0}b"] {
            assert_eq!(PetName::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn white_space_alone_is_blank() {
        for blank in ["", " ", "   ", "\u{a0}", "\u{2003}\u{3000}"] {
            assert_eq!(PetName::parse(blank), Err(PetNameError::Blank), "{blank:?}");
        }
    }

    #[test]
    fn control_characters_are_refused_at_every_position() {
        for refused in ["\0", "a\0b", "Rex\n", "\tRex", "\u{7f}", "a\u{85}", "\u{9f}"] {
            assert_eq!(PetName::parse(refused), Err(PetNameError::ControlCharacter), "{refused:?}");
        }
        for control in ('\0'..='\u{1f}').chain('\u{7f}'..='\u{9f}') {
            let refused = format!("a{control}b");
            assert_eq!(PetName::parse(&refused), Err(PetNameError::ControlCharacter), "{refused:?}");
        }
    }

    proptest! {
        #[test]
        fn every_text_is_either_kept_exactly_or_refused(text in any::<String>()) {
            if let Ok(name) = PetName::parse(&text) {
                prop_assert_eq!(name.as_str(), text);
            }
        }
    }
}
