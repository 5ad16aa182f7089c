//! `createPet`: valid requests and their responses.

use std::{collections::BTreeSet, thread};

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
fn the_same_pet_sent_twice_is_two_pets() {
    let app = TestApp::start();
    let body = r#"{"name":"Rex","categoryId":7,"status":"sold"}"#;

    let first = app.create(body);
    let second = app.create(body);

    assert_ne!(first["id"], second["id"]);
    assert_eq!(app.get("/v1/pets").json(), json!([first, second]));
}

#[test]
fn pets_created_concurrently_have_distinct_ids() {
    let app = TestApp::start();

    let ids: BTreeSet<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(|| app.create_pets(10))).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });

    assert_eq!(ids.len(), 80);
    assert!(ids.iter().all(|&id| id > 0), "{ids:?}");
    assert_eq!(app.get("/v1/pets?limit=100").ids(), Vec::from_iter(ids));
}

#[test]
fn unknown_members_are_ignored_with_any_value() {
    let app = TestApp::start();

    for unknown in [
        r#""owner":{"name":1,"status":"x"}"#,
        r#""owner":1,"owner":2"#,
        r#""weight":1e9999"#,
        r#""Name":1,"NAME":2,"category_id":"x","categoryid":"x","Status":"x""#,
        r#""":0"#,
        r#""id":"not even a number""#,
    ] {
        let pet = app.create(format!(r#"{{{unknown},"name":"Rex","categoryId":7}}"#));

        assert_eq!(pet, json!({ "id": pet["id"].as_i64().unwrap(), "name": "Rex", "categoryId": 7 }));
    }
}

#[test]
fn a_pet_sent_back_is_a_new_pet_with_a_new_id() {
    let app = TestApp::start();
    let pet = app.create(r#"{"name":"Rex","categoryId":7,"status":"sold"}"#);

    let copy = app.create(pet.to_string());

    let id = copy["id"].as_i64().unwrap();
    assert_ne!(pet["id"], id);
    assert_eq!(copy, json!({ "id": id, "name": "Rex", "categoryId": 7, "status": "sold" }));
    assert_eq!(app.get(&format!("/v1/pets/{}", pet["id"])).json(), pet);
}

#[test]
fn white_space_order_and_escapes_of_the_members_do_not_matter() {
    let app = TestApp::start();

    for body in [
        "\r\n\t {\t\"name\" : \"Rex\" ,\n \"categoryId\":\r7 , \"status\" :\"sold\" } \n",
        "{\"status\":\"sold\",\"categoryId\":7,\"name\":\"Rex\"}",
        "{\"\\u006eame\":\"Rex\",\"category\\u0049d\":7,\"status\":\"s\\u006fld\"}",
    ] {
        let pet = app.create(body);
        let id = pet["id"].as_i64().unwrap();
        assert_eq!(pet, json!({ "id": id, "name": "Rex", "categoryId": 7, "status": "sold" }));
    }
}

#[test]
fn the_query_does_not_matter() {
    let app = TestApp::start();

    let response = app.request("POST", "/v1/pets?limit=0&status=x").json(PET).send();

    let pet = response.assert_status(201).json();
    response.assert_header("Location", Some(&format!("pets/{}", pet["id"])));
}
