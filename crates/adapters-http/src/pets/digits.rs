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
    fn the_range_is_1_to_the_greatest_int64() {
        assert_eq!(parse("1"), Some(1));
        assert_eq!(parse("9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse("9223372036854775808"), None);
    }

    #[test]
    fn a_text_that_is_not_plain_digits_is_refused() {
        for text in ["", "0", "01", "-1", "+1", " 1", "1 ", "1.0", "1e2", "0x1", "١", "a"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_positive_number_is_parsed(number in 1..=i64::MAX) {
            prop_assert_eq!(parse(&number.to_string()), Some(number));
        }

        #[test]
        fn a_number_has_one_valid_text(text in "[-+0-9 ]{0,20}") {
            if let Some(number) = parse(&text) {
                prop_assert_eq!(number.to_string(), text);
            }
        }
    }
}
