//! Secrets in files of their own.

use super::*;

const TOKENS: &str = "ANIMAL_STORE_KEYS__MEMORY__TOKENS";
const TOKENS_FILE: &str = "ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE";

/// Returns a file with this content, and its path.
fn secret_file(text: &str) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

/// The listener requires tokens, and the backend requires a URL: neither is a second error.
#[test]
fn a_missing_or_unreadable_file_is_one_error_with_its_path_and_the_variable() {
    for (path, reason) in [("/nowhere/secret", "No such file"), ("/", "Is a directory")] {
        let found = errors(&environment(&[(TOKENS_FILE, path), ("ANIMAL_STORE_HTTP__LISTEN", "0.0.0.0:0")]));
        let expected = format!("keys.memory.tokens ({path}, named by {TOKENS_FILE}) cannot be read: {reason}");
        assert!(matches!(&found[..], [error] if error.starts_with(&expected)), "{found:?}");

        let variable = "ANIMAL_STORE_STORAGE__POSTGRES__URL_FILE";
        let found = errors(&environment(&[
            (variable, path),
            ("ANIMAL_STORE_STORAGE__BACKEND", "postgres"),
            ("ANIMAL_STORE_KEYS__BACKEND", "memory"),
        ]));
        let expected = format!("storage.postgres.url ({path}, named by {variable}) cannot be read: {reason}");
        assert!(matches!(&found[..], [error] if error.starts_with(&expected)), "{found:?}");
    }
}

#[test]
fn an_empty_file_is_one_error() {
    for text in ["", "\n", " , \n"] {
        let (_secret, path) = secret_file(text);
        let (sources, config) = file(&format!("[http]\nlisten = '0.0.0.0:0'\n[keys.memory]\ntokens_file = '{path}'\n"));
        let name = config.path().display();
        assert_eq!(errors(&sources), [format!("keys.memory.tokens ({path}, named by {name}, line 4) is empty")]);
    }
}

#[test]
fn an_error_of_the_content_names_the_file_and_no_secret() {
    let (_secret, path) = secret_file("good\ntop secret\n");
    let [error] = &errors(&environment(&[(TOKENS_FILE, &path)]))[..] else { panic!("one error") };
    let expected =
        format!("keys.memory.tokens ({path}, named by {TOKENS_FILE}) contains an invalid token, number 2: a token has");
    assert!(error.starts_with(&expected) && !error.contains("secret, "), "{error}");
    assert!(!error.replace(&path, "").contains("top secret"), "{error}");
}

#[test]
fn a_secret_is_set_directly_or_by_a_file() {
    let (_secret, path) = secret_file("a");
    let error =
        format!("keys.memory.tokens ({TOKENS}) and keys.memory.tokens_file ({TOKENS_FILE}) must not both be set");
    assert_eq!(errors(&environment(&[(TOKENS, "a"), (TOKENS_FILE, &path)])), [error]);
}

#[test]
fn a_url_in_place_of_the_path_is_not_shown() {
    let variable = "ANIMAL_STORE_KEYS__REDIS__URL_FILE";
    let [error] = &errors(&environment(&[(variable, "redis://:top-secret@localhost")]))[..] else {
        panic!("one error")
    };
    let expected = format!("keys.redis.url ({variable} names a URL, not a file) cannot be read: No such file");
    assert!(error.starts_with(&expected) && !error.contains("top-secret"), "{error}");
}

/// So that a reload finds a file with another secret.
#[test]
fn a_secret_in_a_file_is_compared_by_its_content() {
    let (_secret, path) = secret_file("a");
    let values =
        Config::load(&environment(&[(TOKENS_FILE, &path), ("ANIMAL_STORE_HTTP__WORKERS", "3")])).unwrap().values;
    let value = |name| values[name].expose_secret();
    assert_eq!((value("keys.memory.tokens"), value("http.workers"), value("log.format")), ("a", "3", "auto"));
}

#[test]
fn a_secret_in_a_file_is_shown_as_set() {
    let (_secret, path) = secret_file("a");
    assert_eq!(shown(&environment(&[(TOKENS_FILE, &path)]), "keys.memory.tokens"), "(set)");
    for value in ["", " , "] {
        assert_eq!(shown(&environment(&[(TOKENS, value)]), "keys.memory.tokens"), "(not set)");
    }
}
