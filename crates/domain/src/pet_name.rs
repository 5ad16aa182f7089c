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
        if has_control(text) {
            return Err(PetNameError::ControlCharacter);
        }
        if text.chars().all(char::is_whitespace) {
            return Err(PetNameError::Blank);
        }
        if text.chars().count() > Self::MAX_CHARS {
            return Err(PetNameError::TooLong);
        }
        Ok(Self(text.into()))
    }

    /// Returns the name exactly as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a text contains a control character.
fn has_control(text: &str) -> bool {
    // 0xC2 is the first byte of every control character outside of ASCII. Without an early end, the compiler checks
    // many bytes at a time.
    let may_be_control = |byte: u8| byte.is_ascii_control() || byte == 0xC2;
    text.bytes()
        .fold(false, |found, byte| found | may_be_control(byte))
        && text.chars().any(char::is_control)
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
            assert_eq!(
                PetName::parse(&character.repeat(256)),
                Err(PetNameError::TooLong)
            );
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
        for refused in [
            "\0", "a\0b", "Rex\n", "\tRex", "\u{7f}", "a\u{85}", "\u{9f}",
        ] {
            assert_eq!(
                PetName::parse(refused),
                Err(PetNameError::ControlCharacter),
                "{refused:?}"
            );
        }
        for control in ('\0'..='\u{1f}').chain('\u{7f}'..='\u{9f}') {
            let refused = format!("a{control}b");
            assert_eq!(
                PetName::parse(&refused),
                Err(PetNameError::ControlCharacter),
                "{refused:?}"
            );
        }
    }

    /// The rules in their order, character by character.
    fn broken_rule(text: &str) -> Option<PetNameError> {
        let rules = [
            (
                text.chars().any(char::is_control),
                PetNameError::ControlCharacter,
            ),
            (text.chars().all(char::is_whitespace), PetNameError::Blank),
            (
                text.chars().count() > PetName::MAX_CHARS,
                PetNameError::TooLong,
            ),
        ];
        rules
            .into_iter()
            .find_map(|(is_broken, error)| is_broken.then_some(error))
    }

    proptest! {
        #[test]
        fn a_text_is_kept_exactly_or_refused_by_the_first_rule_that_it_breaks(
            text in prop_oneof![
                any::<String>(),
                "[ -~\\x00\\x1f\\x7f]{0,3}[a-z ]{0,300}[\\x1e-!]?",
                "[\u{a0}\u{2003} ]{0,3}[\u{7e}-\u{c0}]{0,3}",
                "[é猫🐈]{250,260}[\u{80}-\u{a1}]?",
                "[e\u{e9}][\u{301}\u{200d}\u{feff}]{0,3}",
            ]
        ) {
            let expected = broken_rule(&text).map_or_else(|| Ok(text.clone()), Err);
            prop_assert_eq!(PetName::parse(&text).map(|name| name.as_str().to_owned()), expected, "{:?}", text);
        }
    }
}
