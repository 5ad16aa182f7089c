use super::*;

/// What is wrong with the keys of Redis, where all else is right.
fn redis_problems(variables: &[(&str, &str)]) -> Vec<String> {
    let backend = ("ANIMAL_STORE_KEYS__BACKEND", "redis");
    let variables: Vec<_> = variables.iter().copied().chain([backend]).collect();
    problems(&environment(&variables))
}

#[test]
fn api_keys_in_redis_need_to_know_where_it_is() {
    let url = "keys.redis.url (ANIMAL_STORE_KEYS__REDIS__URL)";
    assert_eq!(redis_problems(&[]), [format!("{url} is required where keys.backend is redis")]);

    for (value, problem) in [
        ("top-secret", "must be redis://[user:password@]host"),
        ("https://:top-secret@localhost", "must be redis://[user:password@]host"),
        ("redis://:top-secret@localhost/x", "must be redis://[user:password@]host"),
        ("redis://:top-secret@localhost/-1", "must be redis://[user:password@]host"),
        ("redis://top-secret@localhost", "must be redis://[user:password@]host"),
        ("rediss://:top-secret@localhost#insecure", "must not end in #insecure"),
    ] {
        let [found] = &redis_problems(&[("ANIMAL_STORE_KEYS__REDIS__URL", value)])[..] else { panic!("{value}") };
        assert!(found.starts_with(&format!("{url} {problem}")) && !found.contains("top-secret"), "{found}");
    }
}

#[test]
fn a_password_may_hold_what_separates_a_list() {
    let sources = environment(&[
        ("ANIMAL_STORE_KEYS__BACKEND", "redis"),
        ("ANIMAL_STORE_KEYS__REDIS__URL", "redis://shop:a,b@localhost:7/3"),
    ]);
    let config = Config::load(&sources).unwrap();

    let KeysConfig::Redis(redis) = &config.keys else { panic!("keys in Redis") };
    assert_eq!(redis.endpoint.to_string(), "localhost:7");
    assert!(!format!("{config:?}").contains("a,b"), "{config:?}");
}

#[test]
fn certificates_of_redis_are_read_and_checked() {
    let pem = tempfile::NamedTempFile::new().unwrap();
    let path = pem.path().to_str().unwrap();
    let url = ("ANIMAL_STORE_KEYS__REDIS__URL", "rediss://localhost");
    for (variables, expected) in [
        (&[url, ("ANIMAL_STORE_KEYS__REDIS__TLS_CA_FILE", "/nowhere")][..], "keys.redis.tls_ca_file"),
        (&[url, ("ANIMAL_STORE_KEYS__REDIS__TLS_CERT_FILE", path)], "keys.redis.tls_cert_file"),
        (
            &[("ANIMAL_STORE_KEYS__REDIS__URL", "redis://localhost"), ("ANIMAL_STORE_KEYS__REDIS__TLS_CA_FILE", path)],
            "keys.redis.url (ANIMAL_STORE_KEYS__REDIS__URL) must begin with rediss:// where certificates are given",
        ),
        (
            &[url, ("ANIMAL_STORE_KEYS__REDIS__TLS_CERT_FILE", path), ("ANIMAL_STORE_KEYS__REDIS__TLS_KEY_FILE", path)],
            "keys.redis.url (ANIMAL_STORE_KEYS__REDIS__URL) cannot be used with these certificates: ",
        ),
    ] {
        let found = redis_problems(variables);
        assert!(found.iter().any(|problem| problem.starts_with(expected)), "{found:?}");
    }
}

#[test]
fn the_names_in_redis_begin_with_something() {
    for prefix in ["", "two words", "é"] {
        let url = ("ANIMAL_STORE_KEYS__REDIS__URL", "redis://localhost");
        let [found] = &redis_problems(&[url, ("ANIMAL_STORE_KEYS__REDIS__PREFIX", prefix)])[..] else {
            panic!("{prefix}")
        };
        assert!(found.contains("must be 1 to 100 visible ASCII characters"), "{found}");
    }
}
