use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// Prefix of issued tokens, so that a secret scanner finds a leaked token.
const PREFIX: &str = "animalstore_";
/// 256 bits in base 62.
const SECRET_DIGITS: usize = 43;
/// 32 bits in base 62.
const CHECKSUM_DIGITS: usize = 6;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The secret that a client sends: a b64token (RFC 6750, section 2.1) of 1 to [`ApiToken::MAX_BYTES`] bytes.
///
/// An issued token is `animalstore_`, 43 base-62 digits that encode 256 random bits, and 6 digits with the CRC-32 of
/// those 43: a mistyped token is refused without a lookup. A token from another system has any other form and no
/// checksum.
#[derive(Debug, Clone)]
pub struct ApiToken(SecretString);

/// The text is not a token. The messages do not repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ApiTokenError {
    /// The text is not a b64token or is too long.
    #[error(
        "a token has 1 to {} characters of A-Z a-z 0-9 - . _ ~ + / and may end with =",
        ApiToken::MAX_BYTES
    )]
    Malformed,
    /// The text has the prefix of issued tokens, but its checksum is wrong.
    #[error("the checksum of the token is wrong: it is mistyped or truncated")]
    Checksum,
}

impl ApiToken {
    /// Maximum length in bytes.
    pub const MAX_BYTES: usize = 512;

    /// Makes a token from random bits.
    pub fn from_random(bits: &[u8; 32]) -> Self {
        let secret = base62::<SECRET_DIGITS>(bits);
        let checksum = checksum(&secret);
        Self(format!("{PREFIX}{secret}{checksum}").into())
    }

    /// Parses a token. This is the only place that decides which texts are tokens.
    ///
    /// # Errors
    /// See [`ApiTokenError`].
    pub fn parse(token: SecretString) -> Result<Self, ApiTokenError> {
        let text = token.expose_secret();
        if !is_b64token(text) || text.len() > Self::MAX_BYTES {
            return Err(ApiTokenError::Malformed);
        }
        if let Some(issued) = text.strip_prefix(PREFIX)
            && !checksum_matches(issued)
        {
            return Err(ApiTokenError::Checksum);
        }
        Ok(Self(token))
    }

    /// Returns whether a text begins with the prefix of issued tokens.
    pub fn has_prefix(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Returns whether the token has fewer than 22 characters, which 128 random bits have in base 64.
    pub fn is_short(&self) -> bool {
        self.0.expose_secret().len() < 22
    }

    /// Returns the secret.
    pub const fn secret(&self) -> &SecretString {
        &self.0
    }

    /// Computes the digest by which directories find the token.
    pub fn digest(&self) -> ApiKeyDigest {
        ApiKeyDigest::of(&self.0)
    }

    /// Returns the last four characters, by which people recognise the token, or fewer: at most half of the token.
    pub fn last_four(&self) -> String {
        let token = self.0.expose_secret();
        let count = token.chars().count();
        token.chars().skip(count - 4.min(count / 2)).collect()
    }
}

/// One or more of `A-Z a-z 0-9 - . _ ~ + /`, then any number of `=`.
fn is_b64token(text: &str) -> bool {
    let unpadded = text.trim_end_matches('=');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !unpadded.is_empty() && unpadded.bytes().all(allowed)
}

fn checksum_matches(rest: &str) -> bool {
    rest.split_at_checked(SECRET_DIGITS)
        .is_some_and(|(secret, end)| checksum(secret) == end)
}

fn checksum(secret: &str) -> String {
    let crc32 = crc32fast::hash(secret.as_bytes());
    base62::<CHECKSUM_DIGITS>(&crc32.to_be_bytes())
}

/// Encodes a big-endian number as `COUNT` digits; higher digits are dropped.
pub(super) fn base62<const COUNT: usize>(bytes: &[u8]) -> String {
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

/// SHA-256 digest of a token: the only form in which a directory stores and compares tokens.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiKeyDigest(pub [u8; 32]);

impl ApiKeyDigest {
    /// Computes the digest of a token. The work depends only on the length of the token.
    pub fn of(token: &SecretString) -> Self {
        Self(Sha256::digest(token.expose_secret()).into())
    }
}

/// Prints no part of the digest: a short token could be guessed from it.
impl fmt::Debug for ApiKeyDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKeyDigest(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(bits: &[u8; 32]) -> String {
        ApiToken::from_random(bits)
            .secret()
            .expose_secret()
            .to_owned()
    }

    fn parse(token: &str) -> Result<(), ApiTokenError> {
        ApiToken::parse(token.into()).map(drop)
    }

    /// The expected tokens were computed by another program with the CRC-32 of zlib.
    #[test]
    fn a_token_encodes_its_bits_and_their_checksum() {
        assert_eq!(
            token(&[0; 32]),
            "animalstore_00000000000000000000000000000000000000000002CZclj"
        );
        assert_eq!(
            token(&[255; 32]),
            "animalstore_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp13sRzl1"
        );
    }

    #[test]
    fn an_issued_token_is_accepted_and_a_mistyped_one_is_not() {
        let good = token(&[7; 32]);
        assert_eq!(parse(&good), Ok(()));
        for (index, _) in good.char_indices().skip(PREFIX.len()) {
            let mut bad = good.clone();
            bad.replace_range(
                index..=index,
                if &good[index..=index] == "x" {
                    "y"
                } else {
                    "x"
                },
            );
            assert_eq!(parse(&bad), Err(ApiTokenError::Checksum), "{bad}");
        }
        for bad in [PREFIX, &good[..good.len() - 1], &format!("{good}0")] {
            assert_eq!(parse(bad), Err(ApiTokenError::Checksum), "{bad}");
        }
    }

    #[test]
    fn a_token_has_1_to_512_characters_of_its_alphabet_and_padding_only_at_its_end() {
        let longest = "x".repeat(ApiToken::MAX_BYTES);
        for good in [
            "a",
            "AZaz09-._~+/",
            "a=",
            "a==",
            "sk_live_123",
            "animalstore",
            "Animalstore_1",
            &longest,
        ] {
            assert_eq!(parse(good), Ok(()), "{good}");
            assert!(!ApiToken::has_prefix(good), "{good}");
        }
        let too_long = format!("{longest}x");
        for bad in [
            "",
            "=",
            "a=b",
            "a b",
            " a",
            "a\t",
            "a:b",
            "*",
            "\"a\"",
            "é",
            "animalstore_é",
            &too_long,
        ] {
            assert_eq!(parse(bad), Err(ApiTokenError::Malformed), "{bad:?}");
        }
        assert!(ApiToken::has_prefix(&token(&[7; 32])));
    }

    #[test]
    fn a_token_of_fewer_than_22_characters_is_short() {
        for (length, is_short) in [(1, true), (21, true), (22, false), (512, false)] {
            let token = ApiToken::parse("x".repeat(length).into()).unwrap();
            assert_eq!(token.is_short(), is_short, "{length}");
        }
    }

    #[test]
    fn at_most_half_of_a_token_is_shown() {
        for (token, shown) in [
            ("a", ""),
            ("abc", "c"),
            ("abcdefg", "efg"),
            ("abcdefgh", "efgh"),
            ("012345678", "5678"),
        ] {
            assert_eq!(ApiToken::parse(token.into()).unwrap().last_four(), shown);
        }
    }

    #[test]
    fn no_part_of_a_token_is_printed() {
        let token = ApiToken::from_random(&[7; 32]);
        assert!(!format!("{token:?}").contains(token.secret().expose_secret()));
    }

    #[test]
    fn the_digits_are_those_of_the_number() {
        assert_eq!(base62::<3>(&[0, 0]), "000");
        assert_eq!(base62::<3>(&[0, 61]), "00z");
        assert_eq!(base62::<3>(&[0, 62]), "010");
        assert_eq!(base62::<3>(&[255, 255]), "H31", "17 * 62 * 62 + 3 * 62 + 1");
    }

    #[test]
    fn the_digest_is_a_sha_256_of_which_no_part_is_printed() {
        let digest = ApiKeyDigest::of(&"abc".into());
        assert_eq!(
            digest.0[..4],
            [0xba, 0x78, 0x16, 0xbf],
            "FIPS 180-2, appendix B.1"
        );
        assert_eq!(format!("{digest:?}"), "ApiKeyDigest(..)");
    }
}
