//! A token is accepted exactly if it has the form of RFC 6750, section 2.1, and, with the prefix of issued tokens,
//! their length and checksum. Each line of the input is the value of an `Authorization` header.
#![no_main]

use animal_store_adapters_http::fuzzing::parse_authorization;
use animal_store_app::ApiToken;
use animal_store_fuzz::headers;
use libfuzzer_sys::fuzz_target;
use secrecy::ExposeSecret;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fuzz_target!(|data: &[u8]| {
    check_issued(data);
    let values: Vec<_> = data.split(|&byte| byte == b'\n').collect();
    let Some(parsed) = parse(&values) else { return };
    let parsed = parsed
        .as_ref()
        .map(|token| token.secret().expose_secret().as_bytes())
        .map_err(|error| &**error);
    assert_eq!(parsed, expected(&values));
});

/// `None`: one of the values cannot be the value of a header.
fn parse(values: &[&[u8]]) -> Option<Result<ApiToken, String>> {
    Some(parse_authorization(&headers("authorization", values)?))
}

fn expected<'a>(values: &[&'a [u8]]) -> Result<&'a [u8], &'static str> {
    let [value] = values else {
        return Err("MalformedApiKey");
    };
    if !value
        .get(..6)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"))
    {
        return Err("MissingApiKey");
    }
    let token = match value.get(6) {
        None => return Err("MalformedApiKey"),
        Some(b' ') => {
            &value[value[6..]
                .iter()
                .position(|&byte| byte != b' ')
                .map_or(value.len(), |spaces| 6 + spaces)..]
        }
        Some(_) => return Err("MissingApiKey"),
    };
    let end = token
        .iter()
        .rposition(|&byte| byte != b'=')
        .map_or(0, |last| last + 1);
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(byte);
    if end == 0 || token.len() > 512 || !token[..end].iter().all(is_allowed) {
        return Err("MalformedApiKey");
    }
    match token.strip_prefix(b"animalstore_") {
        Some(digits) if digits.len() != 49 || digits[43..] != checksum(&digits[..43]) => {
            Err("UnknownApiKey")
        }
        _ => Ok(token),
    }
}

fn checksum(secret: &[u8]) -> [u8; 6] {
    let mut crc = crc32fast::hash(secret) as usize;
    let mut digits = [0; 6];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[crc % 62];
        crc /= 62;
    }
    digits
}

/// An issued token is accepted. With another character, it is not.
fn check_issued(data: &[u8]) {
    let Some((bits, change)) = data.split_first_chunk() else {
        return;
    };
    let token = ApiToken::from_random(bits);
    let mut text = format!("Bearer {}", token.secret().expose_secret()).into_bytes();
    assert!(matches!(parse(&[&text]), Some(Ok(_))));
    if let [index, byte, ..] = change {
        let index = "Bearer animalstore_".len() + usize::from(*index) % 49;
        if text[index] != *byte {
            text[index] = *byte;
            assert!(!matches!(parse(&[&text]), Some(Ok(_))));
        }
    }
}
