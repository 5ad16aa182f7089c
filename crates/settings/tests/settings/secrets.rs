//! Secrets, which can be in a file, and which no error and no output shows.

use super::*;

const SECRET: &str = "top-secret";

fn tokens_of(sources: &Sources) -> Option<String> {
    let secret = SCHEMA.read(sources).open(tokens).ok()?;
    Some(secret.expose_secret().to_owned())
}

#[test]
fn a_secret_can_be_in_a_variable_a_list_or_a_file() {
    let list = file("[keys]\ntokens = ['a', 'b']\n");
    let secret = file("\u{feff}a\nb\n");
    let path = secret.path().to_str().unwrap();
    let named = in_environment(&[("SHOP_KEYS__TOKENS_FILE", path)]);
    let variable = in_environment(&[("SHOP_KEYS__TOKENS", " a, b,,")]);
    assert_eq!(tokens_of(&variable).as_deref(), Some("a, b,,"));
    assert_eq!(tokens_of(&in_file(list.path())).as_deref(), Some("a,b"));
    assert_eq!(tokens_of(&named).as_deref(), Some("a\nb"));
    for (sources, is_set) in [
        (&variable, true),
        (&named, true),
        (&Sources::default(), false),
    ] {
        assert_eq!(SCHEMA.read(sources).is_set("keys.tokens"), is_set);
    }
}

/// A reload finds another content of a file.
#[test]
fn the_value_of_a_secret_in_a_file_is_the_content_once_it_was_opened() {
    let secret = file("a\n");
    let path = secret.path().to_str().unwrap();
    let mut values = SCHEMA.read(&in_environment(&[("SHOP_KEYS__TOKENS_FILE", path)]));
    let mut unopened = values.clone();
    assert!(values.is_set("keys.tokens") && tokens(&mut values).is_none());
    assert_eq!(unopened.reload(&values), Changes::default());
    values.open(tokens).unwrap();
    assert_eq!(unopened.reload(&values).others, ["keys.tokens"]);
}

#[test]
fn a_file_with_a_secret_that_cannot_be_used_is_one_error_with_its_path_and_its_source() {
    const FILE: &str = "SHOP_KEYS__TOKENS_FILE";
    let empty = file("");
    let blank = file("\n , \n");
    for (path, reason) in [
        ("/nowhere/secret", "No such file"),
        ("/", "Is a directory"),
        ("/dev/zero", "it is larger than 1 MiB"),
        (empty.path().to_str().unwrap(), "is empty"),
        (blank.path().to_str().unwrap(), "is empty"),
    ] {
        let mut values = SCHEMA.read(&in_environment(&[(FILE, path)]));
        let opened = values.open(|values| {
            tokens(values);
            // Another section that uses it causes no second error, nor does a rule.
            tokens(values);
            let is_set = values.is_set("keys.tokens");
            values.require(is_set, &["keys.tokens"], "is required");
            Some(())
        });
        let found = opened.unwrap_err().to_string();
        let expected = if reason == "is empty" {
            format!("keys.tokens ({path}, named by {FILE}) {reason}")
        } else {
            format!("keys.tokens_file ({FILE}) names {path}, which cannot be read: {reason}")
        };
        assert!(found.contains(&expected), "{expected}: {found}");
        assert_eq!(found.lines().count(), 2, "{found}");
    }
}

#[test]
fn a_secret_that_is_set_twice_or_in_place_of_its_file_is_an_error() {
    for text in [
        "",
        SECRET,
        &format!("redis://:{SECRET}@localhost"),
        &format!("//:{SECRET}@localhost"),
        &format!("host=localhost password={SECRET} sslrootcert=/ca.pem"),
    ] {
        let found = errors(&in_environment(&[("SHOP_KEYS__TOKENS_FILE", text)]));
        let expected = "keys.tokens_file (SHOP_KEYS__TOKENS_FILE) names a file that cannot be read";
        assert!(
            matches!(&found[..], [error] if error.starts_with(expected) && !error.contains(SECRET)),
            "{found:?}"
        );
    }
    let both = in_environment(&[
        ("SHOP_KEYS__TOKENS", SECRET),
        ("SHOP_KEYS__TOKENS_FILE", "/nowhere"),
    ]);
    let expected = "keys.tokens (SHOP_KEYS__TOKENS) and keys.tokens_file (SHOP_KEYS__TOKENS_FILE) must not both be set";
    assert_eq!(errors(&both), [expected]);
}

#[test]
fn a_text_that_can_be_a_secret_is_not_repeated_in_a_wrong_place() {
    for text in [
        "redis://:top-secret@localhost",
        "//top-secret",
        "user:top-secret@localhost",
        "localhost?key=top-secret",
        "a\ntop-secret",
        "-----BEGIN PRIVATE KEY----- top-secret",
    ] {
        let found = errors(&in_environment(&[("SHOP_LOG__FORMAT", text)]));
        assert_eq!(
            found,
            ["log.format (SHOP_LOG__FORMAT) must be text or json"]
        );
    }
}

#[test]
fn a_secret_is_never_shown() {
    let values = SCHEMA.read(&in_environment(&[("SHOP_KEYS__TOKENS", SECRET)]));
    assert!(!format!("{values:?}").contains(SECRET), "{values:?}");
    let line = "#keys.tokens = \"(set)\" # SHOP_KEYS__TOKENS".to_owned();
    assert!(values.lines().contains(&line), "{:?}", values.lines());
    let in_flag = Sources {
        flags: vec![flag("keys.tokens", SECRET)],
        ..Sources::default()
    };
    let opened = SCHEMA.read(&in_flag).open(format);
    let error = opened.unwrap_err().to_string();
    assert!(error.contains("keys.tokens (--set) is a secret"), "{error}");
    assert!(!error.contains(SECRET), "{error}");
}
