//! The position of a page in a list: the id before the first pet of the page, as 8 bytes in big-endian order, in
//! base64url without padding.

use animal_store_domain::PetId;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// Exactly the valid cursors: the first of the eight bytes is less than 128.
pub(crate) const CURSOR_PATTERN: &str = "^[A-Za-f][A-Za-z0-9_-]{9}[AEIMQUYcgkosw048]$";

pub(super) fn encode(after: PetId) -> String {
    URL_SAFE_NO_PAD.encode(after.get().to_be_bytes())
}

/// Returns the position. `None` is the start of the list.
pub(super) fn decode(cursor: &str) -> Result<Option<PetId>, InvalidCursor> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| InvalidCursor)?;
    let position = i64::from_be_bytes(bytes.try_into().map_err(|_| InvalidCursor)?);
    if position < 0 { Err(InvalidCursor) } else { Ok(PetId::parse(position).ok()) }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be taken from a next link")]
pub(super) struct InvalidCursor;

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, string::string_regex};

    use super::*;

    /// [`CURSOR_PATTERN`] in code.
    fn matches_the_pattern(text: &str) -> bool {
        let bytes = text.as_bytes();
        bytes.len() == 11
            && matches!(bytes[0], b'A'..=b'Z' | b'a'..=b'f')
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte))
            && b"AEIMQUYcgkosw048".contains(&bytes[10])
    }

    #[test]
    fn the_start_of_the_list_is_a_position() {
        assert_eq!(decode("AAAAAAAAAAA"), Ok(None));
    }

    proptest! {
        #[test]
        fn every_position_is_decoded_from_its_cursor(id in 1..=i64::MAX) {
            let id = PetId::parse(id).unwrap();
            let cursor = encode(id);
            prop_assert!(matches_the_pattern(&cursor));
            prop_assert_eq!(decode(&cursor), Ok(Some(id)));
        }

        #[test]
        fn every_text_of_the_pattern_is_valid(text in string_regex(CURSOR_PATTERN.trim_matches(['^', '$'])).unwrap()) {
            prop_assert!(decode(&text).is_ok(), "{text:?}");
        }

        #[test]
        fn exactly_the_texts_of_the_pattern_are_valid(text in "[A-Za-z0-9_=-]{10}[AEIMQUYcgkosw048B9+/]{0,2}") {
            prop_assert_eq!(decode(&text).is_ok(), matches_the_pattern(&text));
        }
    }
}
