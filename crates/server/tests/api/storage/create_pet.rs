//! `createPet`: valid requests and their responses.

use serde_json::json;

use crate::{
    link,
    test_app::{PET, TestApp},
};

#[test]
fn a_created_pet_is_returned_with_its_id_and_every_status_is_kept() {
    let app = TestApp::start();

    for status in ["available", "pending", "sold"] {
        let pet = app.create(json!({ "name": "Rex", "categoryId": 7, "status": status }).to_string());

        let id = pet["id"].as_i64().unwrap();
        assert_eq!(pet, json!({ "id": id, "name": "Rex", "categoryId": 7, "status": status }));
        assert_eq!(app.get(&format!("/v1/pets/{id}")).json(), pet);
    }
}

#[test]
fn an_omitted_status_is_absent_from_every_response() {
    let app = TestApp::start();

    let pet = app.create(PET);

    let expected = json!({ "id": pet["id"].as_i64().unwrap(), "name": "Rex", "categoryId": 7 });
    assert_eq!(pet, expected);
    assert_eq!(app.get(&format!("/v1/pets/{}", pet["id"])).json(), expected);
    assert_eq!(app.get("/v1/pets").json(), json!([expected]));
}

#[test]
fn the_location_leads_to_the_pet() {
    let app = TestApp::start();

    let response = app.post(PET);

    let pet = response.assert_status(201).json();
    let location = response.header("Location").expect("a Location");
    assert_eq!(location, format!("pets/{}", pet["id"]));
    assert_eq!(app.get(&link::resolve("/v1/pets", location)).json(), pet);
}

#[test]
fn a_name_is_kept_exactly_and_an_escaped_one_decoded() {
    let app = TestApp::start();

    // Composed and decomposed letters are different names. The scalar values count, not the characters of their
    // escapes.
    let (escaped, longest) = (format!("\"{}\"", r"\ud83d\uDE3A".repeat(255)), "\u{1f63a}".repeat(255));
    for (written, name) in [
        ("\" e\u{301}\u{212b}\u{202e}\u{feff} \"", " e\u{301}\u{212b}\u{202e}\u{feff} "),
        (r#""\"quoted\" \\ back\/slash %00 <script>""#, r#""quoted" \ back/slash %00 <script>"#),
        (&escaped, &longest),
    ] {
        let pet = app.create(format!(r#"{{"name":{written},"categoryId":1}}"#));
        assert_eq!(pet["name"], name);
        assert_eq!(app.get(&format!("/v1/pets/{}", pet["id"])).json(), pet);
        assert_eq!(app.get("/v1/pets").json().as_array().and_then(|pets| pets.last()), Some(&pet));
    }
}
