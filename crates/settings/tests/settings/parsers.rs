//! What a value must be.

use std::time::Duration;

use animal_store_settings::parsers::{duration, number, path};

#[test]
fn a_duration_or_a_number_outside_of_its_range_is_refused_with_the_range() {
    let parse = duration(Duration::from_secs(1)..=Duration::from_mins(1));
    assert_eq!(parse("1m"), Ok(Duration::from_mins(1)));
    for text in ["999ms", "1m 1ms", "5", "", "soon", "-1s"] {
        let expected = "a duration from 1s to 1m, such as 5s";
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
    let parse = number::<i32>(1..=9);
    for text in ["", "-1", "0.5", "3/s", "two"] {
        let expected = "a whole number from 1 to 9";
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn a_path_is_any_text_but_a_url_and_a_private_key() {
    let text = "/srv/user@host//a\nb?.db";
    assert_eq!(path(text), Ok(text.into()));
    for text in ["", "postgres://db", "-----BEGIN PRIVATE KEY-----"] {
        assert_eq!(path(text), Err("the path of a file".to_owned()), "{text}");
    }
}
