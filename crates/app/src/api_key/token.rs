use secrecy::{ExposeSecret, SecretString};

use super::{ApiKeyDigest, base62};

/// What a token of ours begins with, so that a secret scanner finds one that leaked.
const PREFIX: &str = "animalstore_";
/// 256 bits in base 62.
const SECRET_DIGITS: usize = 43;
/// 32 bits in base 62.
const CHECKSUM_DIGITS: usize = 6;

/// The secret that a client sends: `animalstore_`, 43 digits of base 62 that hold 256 random bits, and 6 digits with
/// the CRC-32 of those 43, so that a mistyped one is told from an unknown one without a look-up.
///
/// Tokens of other shapes, from other systems, are tokens too; they have no checksum.
#[derive(Debug, Clone)]
pub struct ApiToken(SecretString);

impl ApiToken {
    /// The token of these random bits.
    pub fn from_random(bits: &[u8; 32]) -> Self {
        let secret = base62::encode::<SECRET_DIGITS>(bits);
        let checksum = base62::encode::<CHECKSUM_DIGITS>(&crc32fast::hash(secret.as_bytes()).to_be_bytes());
        Self(format!("{PREFIX}{secret}{checksum}").into())
    }

    /// A token that somebody sent; `None` for one that begins like ours and cannot be one.
    pub fn from_outside(token: SecretString) -> Option<Self> {
        let well_formed = match token.expose_secret().strip_prefix(PREFIX) {
            Some(rest) => checksum_holds(rest),
            None => true,
        };
        well_formed.then_some(Self(token))
    }

    /// Whether a text begins like a token of ours.
    pub fn is_ours(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The token itself.
    pub const fn secret(&self) -> &SecretString {
        &self.0
    }

    /// By which directories find it.
    pub fn digest(&self) -> ApiKeyDigest {
        ApiKeyDigest::of(&self.0)
    }

    /// Its last four characters, by which people recognise it; fewer where four would be more than a quarter of it.
    pub fn last_four(&self) -> String {
        let token = self.0.expose_secret();
        let count = token.chars().count();
        token.chars().skip(count - 4.min(count / 4)).collect()
    }
}

fn checksum_holds(rest: &str) -> bool {
    let Some((secret, checksum)) = rest.split_at_checked(SECRET_DIGITS) else { return false };
    checksum == base62::encode::<CHECKSUM_DIGITS>(&crc32fast::hash(secret.as_bytes()).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(bits: &[u8; 32]) -> String {
        ApiToken::from_random(bits).secret().expose_secret().to_owned()
    }

    fn accepted(token: &str) -> bool {
        ApiToken::from_outside(token.into()).is_some()
    }

    /// The numbers are from another program, with zlib's CRC-32.
    #[test]
    fn a_token_is_its_bits_and_their_checksum() {
        assert_eq!(token(&[0; 32]), "animalstore_00000000000000000000000000000000000000000002CZclj");
        assert_eq!(token(&[255; 32]), "animalstore_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp13sRzl1");
    }

    #[test]
    fn the_last_bit_counts() {
        let mut bits = [0; 32];
        bits[31] = 1;
        assert_ne!(token(&bits), token(&[0; 32]));
    }

    #[test]
    fn a_token_of_ours_is_accepted_and_a_mistyped_one_is_not() {
        let good = token(&[7; 32]);
        assert!(accepted(&good));
        for (index, _) in good.char_indices().skip(PREFIX.len()) {
            let mut bad = good.clone();
            bad.replace_range(index..=index, if &good[index..=index] == "x" { "y" } else { "x" });
            assert!(!accepted(&bad), "{bad}");
        }
        for bad in [PREFIX, &good[..good.len() - 1], &format!("{good}0"), &format!("{PREFIX}é{}", &good[14..])] {
            assert!(!accepted(bad), "{bad}");
        }
    }

    #[test]
    fn tokens_of_other_shapes_are_accepted() {
        for token in ["a", "sk_live_123", "animalstore", "Animalstore_1", "dG9rZW4="] {
            assert!(accepted(token) && !ApiToken::is_ours(token), "{token}");
        }
        assert!(ApiToken::is_ours(&token(&[7; 32])));
    }

    #[test]
    fn at_most_a_quarter_of_a_token_is_shown() {
        for (token, shown) in [("abc", ""), ("abcd", "d"), ("abcdefgh", "gh"), ("0123456789abcdefg", "defg")] {
            assert_eq!(ApiToken::from_outside(token.into()).unwrap().last_four(), shown);
        }
    }

    #[test]
    fn nothing_of_a_token_is_printed() {
        let token = ApiToken::from_random(&[7; 32]);
        assert!(!format!("{token:?}").contains(token.secret().expose_secret()));
    }
}
