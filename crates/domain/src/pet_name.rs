use thiserror::Error;

/// An animal's name: 1 to [`PetName::MAX_CHARS`] Unicode scalar values, not all of them white space, no control
/// characters. It is kept exactly as given: not trimmed, not normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PetName(Box<str>);

/// Why a text is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PetNameError {
    /// No character, or white space alone.
    #[error("must not be blank")]
    Blank,
    /// More than [`PetName::MAX_CHARS`] Unicode scalar values.
    #[error("must have at most {} characters", PetName::MAX_CHARS)]
    TooLong,
    /// A control character (Unicode category Cc), U+0000 among them.
    #[error("must not contain control characters")]
    ControlCharacter,
}

impl PetName {
    /// The longest name, in Unicode scalar values.
    pub const MAX_CHARS: usize = 255;

    /// Takes a text that obeys the rules.
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

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_has_1_to_255_scalar_values_however_many_bytes_they_take() {
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
    fn control_characters_are_refused_wherever_they_stand() {
        for refused in ["\0", "a\0b", "Rex\n", "\tRex", "\u{7f}", "a\u{85}", "\u{9f}"] {
            assert_eq!(PetName::parse(refused), Err(PetNameError::ControlCharacter), "{refused:?}");
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
