//! `getPet`: one pet by its id.

use serde_json::json;

use crate::test_app::TestApp;

#[test]
fn a_pet_is_found_by_its_id() {
    let app = TestApp::start();
    app.create_pet(None);
    let pet = app.create(r#"{"name":"Rex","categoryId":-7,"status":"available"}"#);
    app.create_pet(Some("sold"));
    let path = format!("/v1/pets/{}", pet["id"]);

    let response = app.get(&path);

    let id = pet["id"].as_i64().unwrap();
    let expected = json!({ "id": id, "name": "Rex", "categoryId": -7, "status": "available" });
    assert_eq!(response.assert_status(200).json(), expected);
    assert_eq!(app.get(&path).body, response.body);
}

#[test]
fn an_unknown_id_is_a_404_with_the_error_body() {
    let app = TestApp::start();
    let id = app.create_pet(None);

    for unknown in [id + 1, id + 1_000_000, i64::MAX - 1, i64::MAX] {
        app.get(&format!("/v1/pets/{unknown}")).assert_error(404, "pet_not_found");
    }
}

#[test]
fn a_text_that_is_no_id_is_a_404() {
    let app = TestApp::start();
    let id = app.create_pet(None);

    let texts = "0 -1 abc 9223372036854775808 18446744073709551617 %20 %00 %2F %2F1 %FF % %zz %D9%A1 \
        * 1;v=2 ~ ..";
    for text in texts.split(' ') {
        app.get(&format!("/v1/pets/{text}")).assert_error(404, "pet_not_found");
    }
    // The digits of a pet that exists, written differently.
    for text in [format!("0{id}"), format!("%2B{id}"), format!("{id}%00"), format!("{id}%2F")] {
        app.get(&format!("/v1/pets/{text}")).assert_error(404, "pet_not_found");
    }
}

#[test]
fn percent_encoded_digits_are_the_digits() {
    let app = TestApp::start();
    let id = app.create_pet(None);
    let encoded: String = id.to_string().chars().flat_map(|digit| ['%', '3', digit]).collect();

    assert_eq!(app.get(&format!("/v1/pets/{encoded}")).assert_status(200).json()["id"], id);
}

#[test]
fn the_query_does_not_matter() {
    let app = TestApp::start();
    let id = app.create_pet(Some("sold"));

    for query in ["?", "?limit=0", "?status=available", "?id=1&x=y"] {
        assert_eq!(app.get(&format!("/v1/pets/{id}{query}")).assert_status(200).json()["id"], id);
    }
}
