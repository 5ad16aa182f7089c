//! `createPet`, `getPet` and `listPets`.

use crate::prelude::*;

#[test]
fn a_created_pet_is_returned_by_its_id_and_in_lists_of_its_status() {
    let app = TestApp::start();
    assert_eq!(app.get("/v1/pets").assert_header("Link", None).text(), "[]");

    let longest = "\u{1f63a}".repeat(255);
    let created = [
        json!({ "name": longest, "categoryId": i64::MAX, "status": "sold" }),
        json!({ "name": " e\u{301} \"quoted\" \\ %00 <script> ", "categoryId": -8, "status": "available" }),
        // An omitted status is absent from every response.
        json!({ "name": "Rex", "categoryId": 7 }),
        json!({ "name": "Rex", "categoryId": 7, "status": "pending" }),
        json!({ "name": "Rex", "categoryId": 7, "status": "sold" }),
    ]
    .map(|mut pet| {
        let response = app.post(pet.to_string());
        let created = response.assert_status(201).json();
        pet["id"] = created["id"].as_i64().expect("an id").into();
        assert_eq!(created, pet);
        response.assert_header("Location", Some(&format!("pets/{}", pet["id"])));
        created
    });

    for pet in &created {
        let found = app.get(&format!("/v1/pets/{}", pet["id"]));
        assert_eq!(found.assert_status(200).json(), *pet);
    }
    let list = app.get("/v1/pets");
    assert_eq!(list.assert_status(200).json(), json!(created));
    assert!(list.ids().is_sorted());
    let sold = app.get("/v1/pets?status=sold").json();
    assert_eq!(sold, json!([created[0], created[4]]));
    for id in [created[4]["id"].as_i64().expect("an id") + 1, i64::MAX] {
        app.get(&format!("/v1/pets/{id}"))
            .assert_error(404, "pet_not_found");
    }
}
