//! Whole numbers in paths and queries.

/// Parses a number in plain digits, 1 to `i64::MAX`: no sign, no leading zero, no space.
pub(super) fn parse(digits: &str) -> Option<i64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if plain { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_plain_digits_from_1_to_the_greatest_int64_are_accepted() {
        for (text, value) in [("1", 1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(parse(text), Some(value), "{text:?}");
        }
        for text in [
            "",
            "0",
            "01",
            "-1",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "1e2",
            "0x1",
            "١",
            "a",
            "9223372036854775808",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_number_has_one_valid_text(text in "[-+0-9 ]{0,20}") {
            if let Some(number) = parse(&text) {
                prop_assert_eq!(number.to_string(), text);
            }
        }
    }
}
