//! `getPet`

use serde_json::json;

use crate::test_app::TestApp;

#[test]
fn an_animal_is_found_by_its_id() {
    let app = TestApp::start();
    app.add(None);
    let pet = app.create(r#"{"name":"Rex","categoryId":-7,"status":"available"}"#);
    app.add(Some("sold"));

    let response = app.get(&format!("/v1/pets/{}", pet["id"]));

    let id = pet["id"].as_i64().unwrap();
    let expected = json!({ "id": id, "name": "Rex", "categoryId": -7, "status": "available" });
    assert_eq!(response.assert_status(200).json(), expected);
}

#[test]
fn the_same_question_has_the_same_answer() {
    let app = TestApp::start();
    let path = format!("/v1/pets/{}", app.add(Some("pending")));

    assert_eq!(app.get(&path).body, app.get(&path).body);
}

#[test]
fn an_unknown_id_is_a_404_with_the_error_body() {
    let app = TestApp::start();
    let id = app.add(None);

    for unknown in [id + 1, id + 1_000_000, i64::MAX - 1, i64::MAX] {
        app.get(&format!("/v1/pets/{unknown}")).assert_error(404, "pet_not_found");
    }
}

#[test]
fn what_cannot_be_an_id_is_the_id_of_no_animal() {
    let app = TestApp::start();
    let id = app.add(None);

    for text in [
        "0",
        "00",
        "-1",
        "-0",
        "+1",
        "01",
        "1.0",
        "1e0",
        "0x1",
        "1_000",
        "1,000",
        "abc",
        "null",
        "NaN",
        "9223372036854775808",
        "-9223372036854775808",
        "18446744073709551617",
        "99999999999999999999999999999999999999",
        "%20",
        "%00",
        "%2F",
        "%2F1",
        "%FF",
        "%",
        "%zz",
        "%D9%A1",
        "*",
        "1;v=2",
        "~",
        "..",
    ] {
        app.get(&format!("/v1/pets/{text}")).assert_error(404, "pet_not_found");
    }
    // The digits of an animal that is there, dressed up.
    for text in [
        format!("0{id}"),
        format!("+{id}"),
        format!("-{id}"),
        format!("%2B{id}"),
        format!("{id}.0"),
        format!("{id}e0"),
        format!("%20{id}"),
        format!("{id}%20"),
        format!("{id}%00"),
        format!("{id}%0A"),
        format!("{id}a"),
        format!("{id}%2F"),
    ] {
        app.get(&format!("/v1/pets/{text}")).assert_error(404, "pet_not_found");
    }
}

#[test]
fn percent_encoded_digits_are_the_digits() {
    let app = TestApp::start();
    let id = app.add(None);
    let encoded: String = id.to_string().chars().flat_map(|digit| ['%', '3', digit]).collect();

    assert_eq!(app.get(&format!("/v1/pets/{encoded}")).assert_status(200).json()["id"], id);
}

#[test]
fn what_the_query_says_does_not_matter() {
    let app = TestApp::start();
    let id = app.add(Some("sold"));

    for query in ["?", "?limit=0", "?status=available", "?id=1&x=y"] {
        assert_eq!(app.get(&format!("/v1/pets/{id}{query}")).assert_status(200).json()["id"], id);
    }
}

#[test]
fn head_says_what_get_says_without_a_body() {
    let app = TestApp::start();
    let id = app.add(None);

    for id in [id.to_string(), (id + 1).to_string(), "abc".to_owned()] {
        let path = format!("/v1/pets/{id}");
        app.request("HEAD", &path).send().assert_head_of(&app.get(&path));
    }
}
