//! `getPet`: one pet by its id.

use serde_json::json;

use crate::test_app::TestApp;

#[test]
fn a_pet_is_found_by_its_id() {
    let app = TestApp::start();
    app.create_pet(None);
    let pet = app.create(r#"{"name":"Rex","categoryId":-7,"status":"available"}"#);
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

    let unknown = [id + 1, i64::MAX].map(|id| id.to_string());
    // The digits of a pet that exists, written differently.
    let digits = [format!("0{id}"), format!("%2B{id}"), format!("{id}%00"), format!("{id}%2F")];
    let texts = "0 -1 abc 9223372036854775808 %20 %2F1 %FF % %zz %D9%A1 * ..".split(' ').map(str::to_owned);
    for text in texts.chain(unknown).chain(digits) {
        app.get(&format!("/v1/pets/{text}")).assert_error(404, "pet_not_found");
    }
}

#[test]
fn the_query_does_not_matter() {
    let app = TestApp::start();
    let id = app.create_pet(Some("sold"));

    for query in ["?", "?limit=0", "?status=available", "?id=1&x=y"] {
        assert_eq!(app.get(&format!("/v1/pets/{id}{query}")).assert_status(200).json()["id"], id);
    }
}
