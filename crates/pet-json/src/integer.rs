//! Whole numbers of 64 bits in JSON.

/// 2^53: within this range, all JSON parsers agree on a number with a fraction or an exponent (RFC 8259, section 6).
const MAX_EXACT: i64 = 1 << 53;

/// Parses a JSON number. Within ±2^53, `5.0` and `5e0` are 5, as in JSON Schema. Plain digits may use all 64 bits.
/// Returns `None` for a number that is not an integer or is out of range.
pub(crate) fn parse(number: &str) -> Option<i64> {
    if number.contains(['.', 'e', 'E']) {
        let number = parse_exactly(number)?;
        let exact = -MAX_EXACT..=MAX_EXACT;
        exact.contains(&number).then_some(number)
    } else {
        number.parse().ok()
    }
}

/// Exact, because it uses the digits: in floating point, `5.00000000000000000001` is 5.
fn parse_exactly(number: &str) -> Option<i64> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some(parts) => parts,
        None => (number, "0"),
    };
    let (integer, fraction) = match mantissa.split_once('.') {
        Some(parts) => parts,
        None => (mantissa, ""),
    };
    let digits = format!("{integer}{fraction}");
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() || significant == "-" {
        return Some(0);
    }
    let zeros = digits.len() - significant.len();
    let zeros = u32::try_from(zeros).ok()?;
    let decimals = u32::try_from(fraction.len()).ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    let scale = zeros.checked_add_signed(exponent)?.checked_sub(decimals)?;
    let factor = 10_i64.checked_pow(scale)?;
    let value: i64 = significant.parse().ok()?;
    value.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_digits_may_use_all_64_bits_and_a_whole_number_may_have_a_fraction_or_an_exponent() {
        for (written, value) in [
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("0", 0),
            ("-0", 0),
            ("5e0", 5),
            ("5E+0", 5),
            ("50e-1", 5),
            ("0.5e1", 5),
            ("1.25e2", 125),
            ("-0.0", 0),
            ("0e999999999999999999999", 0),
            ("9007199254740992.0", MAX_EXACT),
            ("-9007199254740992e0", -MAX_EXACT),
            ("1e15", 1_000_000_000_000_000),
        ] {
            assert_eq!(parse(written), Some(value), "{written}");
        }
    }

    #[test]
    fn a_fraction_of_any_size_is_refused_and_beyond_2_to_the_53rd_only_plain_digits_are_accepted() {
        let fractions =
            "5.5 0.1 5e-1 5.00000000000000000001 9007199254740991.5 1e-999999999999999999999";
        let large = "9007199254740993.0 -9007199254740993.0 1e16 -1e16 1e400 1e99999999999";
        let beyond_64_bits = "9223372036854775808 -9223372036854775809";
        for written in [fractions, large, beyond_64_bits]
            .into_iter()
            .flat_map(|texts| texts.split(' '))
        {
            assert_eq!(parse(written), None, "{written}");
        }
    }

    proptest! {
        #[test]
        fn every_integer_is_parsed_exactly(value in any::<i64>()) {
            prop_assert_eq!(parse(&value.to_string()), Some(value));
        }

        #[test]
        fn a_whole_number_within_2_to_the_53rd_is_exact(value in -MAX_EXACT..=MAX_EXACT, zeros in 0..5_usize) {
            prop_assert_eq!(parse(&format!("{value}.0{}", "0".repeat(zeros))), Some(value));
            prop_assert_eq!(parse(&format!("{value}{}e-{zeros}", "0".repeat(zeros))), Some(value));
        }
    }
}
