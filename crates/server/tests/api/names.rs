//! The `name` of an animal: 1 to 255 Unicode scalar values, kept exactly as given.

use serde_json::{Value, json};

use crate::{client::Response, test_app::TestApp};

fn post_name(app: &TestApp, name: &str) -> Response {
    app.post(json!({ "name": name, "categoryId": 1 }).to_string())
}

/// Sends the name as JSON writes it, quotes included.
fn post_written(app: &TestApp, name: &str) -> Response {
    app.post(format!(r#"{{"name":{name},"categoryId":1}}"#))
}

#[track_caller]
fn assert_kept(app: &TestApp, response: &Response, name: &str) {
    let pet = response.assert_status(201).json();
    assert_eq!(pet["name"], name);
    assert_eq!(app.get(&format!("/v1/pets/{}", pet["id"])).json()["name"], name);
    let list = app.get("/v1/pets?limit=100").json();
    assert_eq!(list.as_array().and_then(|pets| pets.last()), Some(&pet));
}

#[test]
fn a_name_has_1_to_255_scalar_values_however_many_bytes_they_take() {
    let app = TestApp::start();

    for character in ["a", "é", "猫", "🐈", "\u{10ffff}"] {
        assert_kept(&app, &post_name(&app, character), character);
        let longest = character.repeat(255);
        assert_kept(&app, &post_name(&app, &longest), &longest);
        post_name(&app, &character.repeat(256)).assert_names("invalid_body", &["name"]);
    }
}

#[test]
fn a_combining_mark_is_a_scalar_value_of_its_own() {
    let app = TestApp::start();

    let longest = format!("{}x", "e\u{301}".repeat(127));
    assert_kept(&app, &post_name(&app, &longest), &longest);
    post_name(&app, &"e\u{301}".repeat(128)).assert_names("invalid_body", &["name"]);
}

#[test]
fn a_name_is_kept_exactly_as_given() {
    let app = TestApp::start();

    for name in [
        " Rex ",
        "a  b",
        "e\u{301}",
        "\u{e9}",
        "\u{212b}",
        "ﬁ",
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
        "1",
    ] {
        assert_kept(&app, &post_name(&app, name), name);
    }
}

#[test]
fn composed_and_decomposed_letters_stay_apart() {
    let app = TestApp::start();

    let composed = post_name(&app, "\u{e9}").json();
    let decomposed = post_name(&app, "e\u{301}").json();

    assert_eq!(composed["name"].as_str().unwrap().as_bytes(), "\u{e9}".as_bytes());
    assert_eq!(decomposed["name"].as_str().unwrap().as_bytes(), "e\u{301}".as_bytes());
}

#[test]
fn an_escaped_name_is_the_name_that_it_stands_for() {
    let app = TestApp::start();

    for (written, name) in [
        (r#""\u0052\u0065\u0078""#, "Rex"),
        (r#""\ud83d\ude3a""#, "😺"),
        (r#""\uD83D\uDE3A""#, "😺"),
        (r#""\"\\\/""#, r#""\/"#),
        (r#""\u00e9""#, "\u{e9}"),
    ] {
        assert_kept(&app, &post_written(&app, written), name);
    }
    // Escapes are not counted: what they stand for is.
    let longest = r"\ud83d\ude3a".repeat(255);
    assert_kept(&app, &post_written(&app, &format!("\"{longest}\"")), &"😺".repeat(255));
}

#[test]
fn white_space_alone_is_no_name() {
    let app = TestApp::start();

    for blank in ["", " ", "   ", "\u{a0}", "\u{2003}\u{3000}", "\u{2028}\u{2029}"] {
        let message = post_name(&app, blank).assert_names("invalid_body", &["name"]);
        assert_eq!(message, "name must not be blank");
    }
}

#[test]
fn control_characters_are_refused_wherever_they_stand() {
    let app = TestApp::start();

    for control in (0..=0x1f_u8).chain(0x7f..=0x9f).map(char::from) {
        let escaped = format!("\\u{:04x}", u32::from(control));
        for name in [format!("{escaped}Rex"), format!("R{escaped}ex"), format!("Rex{escaped}"), escaped] {
            post_written(&app, &format!("\"{name}\"")).assert_names("invalid_body", &["name"]);
        }
    }
    assert_eq!(app.get("/v1/pets").json(), json!([]));
}

#[test]
fn control_characters_beyond_ascii_are_refused_unescaped_too() {
    let app = TestApp::start();

    for control in ['\u{7f}', '\u{80}', '\u{85}', '\u{9f}'] {
        post_written(&app, &format!("\"R{control}ex\"")).assert_names("invalid_body", &["name"]);
    }
}

#[test]
fn a_surrogate_alone_is_refused() {
    let app = TestApp::start();

    for written in
        [r#""\ud800""#, r#""\udfff""#, r#""a\ud83d""#, r#""\ud83da""#, r#""\ude3a\ud83d""#, r#""\ud83d\ud83d""#]
    {
        post_written(&app, written).assert_names("invalid_body", &["name"]);
    }
    assert_eq!(app.get("/v1/pets").json(), Value::Array(Vec::new()));
}
