//! Names and category ids are stored and returned exactly as given.

use serde_json::json;

use crate::test_app::TestApp;

/// Creates a pet of this name, as JSON writes it, and asserts that every response returns it unchanged.
#[track_caller]
fn assert_name_kept(app: &TestApp, written: &str, name: &str) {
    let pet = app.create(format!(r#"{{"name":{written},"categoryId":1}}"#));
    // Compared as bytes: composed and decomposed letters are different names.
    assert_eq!(pet["name"].as_str().map(str::as_bytes), Some(name.as_bytes()));
    assert_eq!(app.get(&format!("/v1/pets/{}", pet["id"])).json(), pet);
    let list = app.get("/v1/pets?limit=100").json();
    assert_eq!(list.as_array().and_then(|pets| pets.last()), Some(&pet));
}

#[test]
fn a_name_is_kept_exactly() {
    let app = TestApp::start();

    for name in [
        " Rex ",
        "a  b",
        "e\u{301}",
        "\u{e9}",
        "\u{212b}",
        "👩‍🚀",
        "\u{202e}xeR",
        "\u{feff}Rex",
        "a\u{a0}b",
        "\u{2028}x\u{2029}",
        "\u{fffd}",
        "\u{ffff}",
        "\u{e000}",
        "'; DROP TABLE pets; --",
        r#""quoted" \ back/slash"#,
        "<script>",
        "%s %00 \\u0041",
        "null",
    ] {
        assert_name_kept(&app, &json!(name).to_string(), name);
    }
}

#[test]
fn an_escaped_name_is_kept_decoded() {
    let app = TestApp::start();

    for (written, name) in [
        (r#""\u0052\u0065\u0078""#, "Rex"),
        (r#""\ud83d\uDE3A""#, "😺"),
        (r#""\"\\\/""#, r#""\/"#),
        // The scalar values count, not the characters of their escapes.
        (&format!("\"{}\"", r"\ud83d\ude3a".repeat(255)), &"😺".repeat(255)),
    ] {
        assert_name_kept(&app, written, name);
    }
}
