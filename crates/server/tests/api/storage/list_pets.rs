//! `listPets`: one page and its filter.

use serde_json::json;

use crate::test_app::TestApp;

#[test]
fn a_list_of_no_pets_is_an_empty_array() {
    let app = TestApp::start();

    // The last cursor is the largest position.
    for query in ["", "?limit=1&status=available", "?cursor=f_________8"] {
        let response = app.get(&format!("/v1/pets{query}"));
        assert_eq!(response.assert_status(200).text(), "[]");
        response.assert_header("Link", None);
    }
}

#[test]
fn a_list_holds_every_field_of_every_pet_in_ascending_order_of_id() {
    let app = TestApp::start();
    let pets = [
        app.create(r#"{"name":"b","categoryId":7,"status":"sold"}"#),
        app.create(r#"{"name":"a","categoryId":-8}"#),
        app.create(r#"{"name":"🐈","categoryId":9223372036854775807,"status":"available"}"#),
        app.create(r#"{"name":"1","categoryId":7,"status":"sold"}"#),
    ];

    let ids = pets.each_ref().map(|pet| pet["id"].as_i64().unwrap());
    assert!(ids.is_sorted_by(|left, right| left < right), "{ids:?}");
    assert_eq!(
        app.get("/v1/pets").assert_status(200).json(),
        json!([
            { "id": ids[0], "name": "b", "categoryId": 7, "status": "sold" },
            { "id": ids[1], "name": "a", "categoryId": -8 },
            { "id": ids[2], "name": "🐈", "categoryId": i64::MAX, "status": "available" },
            { "id": ids[3], "name": "1", "categoryId": 7, "status": "sold" },
        ])
    );
    assert_eq!(app.get("/v1/pets?status=sold").json(), json!([pets[0], pets[3]]));
}
