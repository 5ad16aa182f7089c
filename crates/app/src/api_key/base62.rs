const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Encodes a big-endian number as `COUNT` digits; higher digits are dropped.
pub(super) fn encode<const COUNT: usize>(bytes: &[u8]) -> String {
    let mut number = bytes.to_vec();
    let mut digits = [0; COUNT];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0;
        for byte in &mut number {
            let dividend = remainder * 256 + usize::from(*byte);
            *byte = u8::try_from(dividend / 62).expect("the remainder is below 62");
            remainder = dividend % 62;
        }
        *digit = DIGITS[remainder];
    }
    digits.iter().copied().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_those_of_the_number() {
        assert_eq!(encode::<3>(&[0, 0]), "000");
        assert_eq!(encode::<3>(&[0, 61]), "00z");
        assert_eq!(encode::<3>(&[0, 62]), "010");
        assert_eq!(encode::<3>(&[255, 255]), "H31", "17 * 62 * 62 + 3 * 62 + 1");
    }
}
