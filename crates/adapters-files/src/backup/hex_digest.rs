/// Parses a SHA-256 digest of 64 hexadecimal digits.
pub(super) fn parse(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    hex::decode_to_slice(text, &mut digest).ok().map(|()| digest)
}
