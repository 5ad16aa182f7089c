//! A key is accepted exactly if it is 1 to 255 visible ASCII characters, bare or as a String of structured fields (RFC
//! 9651, section 3.3.3), and it is the key of these characters.
#![no_main]

use animal_store_adapters_http::fuzzing::parse_idempotency_key;
use animal_store_app::{ApiKeyId, IdempotencyKey};
use animal_store_fuzz::headers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let api_key = ApiKeyId::parse("shop").expect("a valid id");
    let Some(headers) = headers("idempotency-key", &[data]) else {
        return;
    };
    let parsed = parse_idempotency_key(&headers, &api_key);
    let expected = content(data)
        .filter(|text| {
            (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        })
        .map(|text| IdempotencyKey::new(api_key, &text));
    assert_eq!(parsed, expected);
});

/// The content of a String, or the bare value.
fn content(value: &[u8]) -> Option<String> {
    let value = str::from_utf8(value).ok()?;
    let Some(quoted) = value.strip_prefix('"') else {
        return Some(value.to_owned());
    };
    let mut text = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            // Spaces may follow the value of a field.
            '"' => return characters.all(|character| character == ' ').then_some(text),
            '\\' => text.push(
                characters
                    .next()
                    .filter(|character| ['"', '\\'].contains(character))?,
            ),
            character => text.push(character),
        }
    }
}
