//! `createPet`

use crate::test_app::TestApp;

#[test]
fn an_animal_is_added_and_returned_with_its_id() {
    let app = TestApp::start();

    let response = app.post(r#"{"name":"Rex","categoryId":7,"status":"pending"}"#);

    assert_eq!(response.status, 201);
    let pet = response.json();
    let id = pet["id"].as_i64().unwrap();
    assert_eq!(pet, serde_json::json!({ "id": id, "name": "Rex", "categoryId": 7, "status": "pending" }));
    assert_eq!(app.get(&format!("/v1/pets/{id}")).json(), pet);
}
