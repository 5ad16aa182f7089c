//! Secrets: in files of their own, and never shown.

use super::*;

const FILE: &str = "ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE";

/// Returns a file with this content, and its path.
fn secret_file(text: &str) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

#[test]
fn tokens_can_be_in_a_variable_a_list_or_a_file() {
    let (list, _file) = file("[keys.memory]\ntokens = ['a', 'b']\n");
    let (_secret, path) = secret_file("a\nb\n");
    for sources in [keys(&[("keys.memory.tokens", "a, b,,")]), list, environment(&[(FILE, &path)])] {
        assert_eq!(tokens(&Config::load(&sources).unwrap()), ["a", "b"]);
    }
}

#[test]
fn a_url_can_be_in_a_file_and_contain_a_comma() {
    let (_secret, path) = secret_file("postgres://shop:a,b@db/animals\n");
    let config = config(&[POSTGRES[0], TOKENS, ("storage.postgres.url_file", &path)]);
    assert_eq!(config.storage.to_string(), "postgres db:5432/animals");
    let config = self::config(&[REDIS[0], ("keys.redis.url", "redis://shop:a,b@localhost:7/3")]);
    assert_eq!(config.keys.to_string(), "redis localhost:7");
    assert!(!format!("{config:?}").contains("a,b"), "{config:?}");
}

/// The listener requires tokens, and the backend requires a URL: neither is a second error.
#[test]
fn a_file_that_cannot_be_used_is_one_error_with_its_path_and_its_source() {
    let url = "ANIMAL_STORE_STORAGE__POSTGRES__URL_FILE";
    for (path, reason) in [("/nowhere/secret", "No such file"), ("/", "Is a directory")] {
        let found = errors(&environment(&[(FILE, path), ("ANIMAL_STORE_HTTP__LISTEN", "0.0.0.0:0")]));
        let expected = format!("keys.memory.tokens ({path}, named by {FILE}) cannot be read: {reason}");
        assert!(matches!(&found[..], [error] if error.starts_with(&expected)), "{found:?}");

        let found = errors(&keys(&[POSTGRES[0], ("storage.postgres.url_file", path), ("keys.backend", "memory")]));
        let expected = format!("storage.postgres.url ({path}, named by {url}) cannot be read: {reason}");
        assert!(matches!(&found[..], [error] if error.starts_with(&expected)), "{found:?}");
    }
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
    let [error] = &errors(&environment(&[(FILE, &path)]))[..] else { panic!("one error") };
    let expected =
        format!("keys.memory.tokens ({path}, named by {FILE}) contains an invalid token, number 2: a token has");
    assert!(error.starts_with(&expected) && !error.contains("secret, "), "{error}");
    assert!(!error.replace(&path, "").contains("top secret"), "{error}");
}

#[test]
fn a_secret_is_set_directly_or_by_a_file() {
    let (_secret, path) = secret_file("a");
    let error = "keys.memory.tokens (ANIMAL_STORE_KEYS__MEMORY__TOKENS) and keys.memory.tokens_file \
                 (ANIMAL_STORE_KEYS__MEMORY__TOKENS_FILE) must not both be set";
    assert_eq!(errors(&keys(&[TOKENS, ("keys.memory.tokens_file", &path)])), [error]);
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
    let values = config(&[("keys.memory.tokens_file", &path), ("http.workers", "3")]).values;
    let value = |name| values[name].expose_secret();
    assert_eq!((value("keys.memory.tokens"), value("http.workers"), value("log.format")), ("a", "3", "auto"));
}

#[test]
fn a_secret_is_never_shown() {
    let secrets = [
        ("storage.postgres.url", "postgres://shop:top-secret@db/animals"),
        ("storage.postgres.migrate_url", "postgres://shop:top-secret@db/animals"),
        ("keys.redis.url", "redis://:top-secret@cache"),
        ("keys.memory.tokens", "top-secret"),
    ];
    for backends in [&[][..], &[POSTGRES[0], REDIS[0]], &[POSTGRES[0], ("keys.backend", "memory")]] {
        let config = config(&[&secrets[..], backends].concat());
        assert!(!format!("{config:?}").contains("top-secret"), "{config:?}");
        let set = config.lines.iter().filter(|line| line.starts_with('#') && line.contains("\"(set)\"")).count();
        assert_eq!(set, secrets.len(), "{:#?}", config.lines);
    }
    for (name, value) in secrets {
        let flags = vec![(name.to_owned(), value.to_owned())];
        let [error] = &errors(&Sources { flags, ..Sources::default() })[..] else { panic!("one error: {name}") };
        assert!(error.starts_with(&format!("{name} (--set) is a secret")) && !error.contains("top-secret"), "{error}");
    }
}
