/// The number that these digits write: no sign, no leading zero, no space, 1 to `i64::MAX`.
pub(crate) fn positive(digits: &str) -> Option<i64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if plain { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_edges_are_1_and_the_greatest_int64() {
        assert_eq!(positive("1"), Some(1));
        assert_eq!(positive("9223372036854775807"), Some(i64::MAX));
        assert_eq!(positive("9223372036854775808"), None);
    }

    #[test]
    fn anything_but_plain_digits_is_refused() {
        for text in ["", "0", "01", "-1", "+1", " 1", "1 ", "1.0", "1e2", "0x1", "١", "a"] {
            assert_eq!(positive(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_positive_number_is_read_as_it_is_written(number in 1..=i64::MAX) {
            prop_assert_eq!(positive(&number.to_string()), Some(number));
        }

        #[test]
        fn what_is_read_is_written_the_same(text in "[-+0-9 ]{0,20}") {
            if let Some(number) = positive(&text) {
                prop_assert_eq!(number.to_string(), text);
            }
        }
    }
}
