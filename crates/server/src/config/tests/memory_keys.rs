//! The keys of `keys.memory`.

use super::*;

#[test]
fn tokens_can_be_in_a_variable_a_list_or_a_file() {
    let variable = environment(&[("ANIMAL_STORE_KEYS__MEMORY__TOKENS", "a, b,,c=")]);
    assert_eq!(tokens(&Config::load(&variable).unwrap()), ["a", "b", "c="]);

    let (list, _file) = file("[keys.memory]\ntokens = ['a', 'b']\n");
    assert_eq!(tokens(&Config::load(&list).unwrap()), ["a", "b"]);

    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a\nb\n").unwrap();
    let path = secret.path().to_str().unwrap();
    let from_file = environment(&[("ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE", path)]);
    assert_eq!(tokens(&Config::load(&from_file).unwrap()), ["a", "b"]);
}

#[test]
fn an_invalid_token_is_refused_without_showing_it() {
    let sources = environment(&[("ANIMAL_STORE_KEYS__MEMORY__TOKENS", "good,top secret")]);
    let [error] = &errors(&sources)[..] else { panic!("one error") };
    assert!(
        error.starts_with("keys.memory.tokens (ANIMAL_STORE_KEYS__MEMORY__TOKENS) contains an invalid token, number 2")
    );
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn keys_in_memory_require_tokens_unless_the_address_is_loopback() {
    let memory = ("ANIMAL_STORE_STORAGE__BACKEND", "memory");
    for (address, required) in
        [("127.0.0.1:0", false), ("127.8.8.8:0", false), ("[::1]:0", false), ("0.0.0.0:0", true), ("[::]:0", true)]
    {
        let open = environment(&[memory, ("ANIMAL_STORE_HTTP__LISTEN", address)]);
        assert_eq!(Config::load(&open).is_err(), required, "{address}");

        let variables = [memory, ("ANIMAL_STORE_HTTP__LISTEN", address), ("ANIMAL_STORE_KEYS__MEMORY__TOKENS", "a")];
        assert!(Config::load(&environment(&variables)).is_ok(), "{address}");
    }
}
