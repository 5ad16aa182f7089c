//! The `categoryId` of an animal: any 64-bit integer, however JSON writes it.

use crate::{client::Response, test_app::TestApp};

fn post_category(app: &TestApp, written: &str) -> Response {
    app.post(format!(r#"{{"name":"Rex","categoryId":{written}}}"#))
}

/// Looks at the bytes of the answers: a reader of JSON could round what it shows.
#[track_caller]
fn assert_stored(app: &TestApp, written: &str, category_id: &str) {
    let response = post_category(app, written);
    let id = &response.assert_status(201).json()["id"];
    for answer in [&response, &app.get(&format!("/v1/pets/{id}"))] {
        let text = answer.text();
        let (_, rest) = text.split_once(r#""categoryId":"#).expect("a categoryId");
        let end = rest.find([',', '}']).expect("an end");
        assert_eq!(&rest[..end], category_id, "{written} in {text}");
    }
}

#[track_caller]
fn assert_refused(app: &TestApp, written: &str) {
    let message = post_category(app, written).assert_names("invalid_body", &["categoryId"]);
    assert_eq!(message, "categoryId must be a 64-bit integer");
}

#[test]
fn every_64_bit_integer_is_kept_exactly() {
    let app = TestApp::start();

    for category_id in [
        "0",
        "1",
        "-1",
        "2147483648",
        "-2147483649",
        "9007199254740992",
        "9007199254740993",
        "-9007199254740993",
        "9223372036854775806",
        "9223372036854775807",
        "-9223372036854775808",
    ] {
        assert_stored(&app, category_id, category_id);
    }
}

#[test]
fn one_beyond_64_bits_is_refused() {
    let app = TestApp::start();

    for written in
        ["9223372036854775808", "-9223372036854775809", "18446744073709551616", "99999999999999999999999999999999"]
    {
        assert_refused(&app, written);
    }
}

#[test]
fn a_whole_number_may_be_written_with_a_fraction_or_an_exponent() {
    let app = TestApp::start();

    for (written, category_id) in [
        ("5.0", "5"),
        ("5e0", "5"),
        ("5E+0", "5"),
        ("-5.000", "-5"),
        ("50e-1", "5"),
        ("0.5e1", "5"),
        ("1.25e2", "125"),
        ("-0", "0"),
        ("0.0", "0"),
        ("-0.0", "0"),
        ("0e5", "0"),
        ("1e15", "1000000000000000"),
    ] {
        assert_stored(&app, written, category_id);
    }
}

#[test]
fn with_a_fraction_or_an_exponent_the_edges_are_2_to_the_53rd() {
    let app = TestApp::start();

    assert_stored(&app, "9007199254740992.0", "9007199254740992");
    assert_stored(&app, "-9007199254740992.0", "-9007199254740992");
    assert_stored(&app, "9007199254740992e0", "9007199254740992");
    assert_stored(&app, "9.007199254740991e15", "9007199254740991");
    for written in [
        "9007199254740993.0",
        "-9007199254740993.0",
        "9007199254740993e0",
        "9007199254740994.0",
        "9223372036854775807.0",
        "1e16",
        "-1e16",
        "1e18",
        "1e400",
        "-1e400",
        "1e99999999999999999999",
    ] {
        assert_refused(&app, written);
    }
}

#[test]
fn a_fraction_is_refused_however_small() {
    let app = TestApp::start();

    for written in ["5.5", "0.1", "-0.5", "5e-1", "1e-400", "5.00000000000000000001", "9007199254740991.5"] {
        assert_refused(&app, written);
    }
}

#[test]
fn what_is_no_number_is_refused() {
    let app = TestApp::start();

    for written in ["null", "true", "false", r#""5""#, r#""""#, "[]", "[5]", "{}", r#"{"id":5}"#] {
        assert_refused(&app, written);
    }
}

#[test]
fn what_json_does_not_call_a_number_is_not_even_json() {
    let app = TestApp::start();

    for written in ["05", "-05", "+5", "5.", ".5", "5e", "-", "- 5", "0x5", "5_000", "NaN", "Infinity", "-Infinity"] {
        post_category(&app, written).assert_error(400, "invalid_body");
    }
}
