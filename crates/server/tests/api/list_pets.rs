//! `listPets`: one page and its filter.

use serde_json::json;

use crate::test_app::TestApp;

#[test]
fn a_list_of_no_animals_is_an_empty_array() {
    let app = TestApp::start();

    for query in ["", "?limit=100", "?status=sold", "?limit=1&status=available"] {
        let response = app.get(&format!("/v1/pets{query}"));
        assert_eq!(response.assert_status(200).json(), json!([]));
        response.assert_header("Link", None);
    }
}

#[test]
fn a_list_holds_every_field_of_every_animal() {
    let app = TestApp::start();
    let pets = [
        app.create(r#"{"name":"Rex","categoryId":7,"status":"sold"}"#),
        app.create(r#"{"name":"Tom","categoryId":-8}"#),
        app.create(r#"{"name":"🐈","categoryId":9223372036854775807,"status":"available"}"#),
    ];

    let response = app.get("/v1/pets");

    assert_eq!(response.assert_status(200).json(), json!(pets));
    let ids: Vec<_> = pets.iter().map(|pet| pet["id"].as_i64().unwrap()).collect();
    assert_eq!(
        response.json(),
        json!([
            { "id": ids[0], "name": "Rex", "categoryId": 7, "status": "sold" },
            { "id": ids[1], "name": "Tom", "categoryId": -8 },
            { "id": ids[2], "name": "🐈", "categoryId": i64::MAX, "status": "available" },
        ])
    );
}

#[test]
fn a_list_without_a_limit_returns_at_most_twenty() {
    let app = TestApp::start();

    let ids = app.add_many(20);
    app.get("/v1/pets").assert_header("Link", None);
    assert_eq!(app.get("/v1/pets").ids(), ids);

    app.add_many(2);
    assert_eq!(app.get("/v1/pets").ids(), ids);
}

#[test]
fn a_list_returns_at_most_as_many_as_its_limit() {
    let app = TestApp::start();
    let ids = app.add_many(101);

    for limit in [1, 2, 7, 19, 20, 21, 99, 100] {
        assert_eq!(app.get(&format!("/v1/pets?limit={limit}")).ids(), ids[..limit]);
    }
}

#[test]
fn a_list_with_room_to_spare_returns_every_animal() {
    let app = TestApp::start();
    let ids = app.add_many(5);

    for limit in [5, 6, 20, 100] {
        let response = app.get(&format!("/v1/pets?limit={limit}"));
        assert_eq!(response.ids(), ids);
        response.assert_header("Link", None);
    }
}

#[test]
fn a_list_is_in_ascending_order_of_id() {
    let app = TestApp::start();
    for name in ["b", "a", "c", "B", "🐈", "1"] {
        app.create(json!({ "name": name, "categoryId": -1, "status": "sold" }).to_string());
    }

    for query in ["", "?status=sold"] {
        let ids = app.get(&format!("/v1/pets{query}")).ids();
        assert_eq!(ids.len(), 6);
        assert!(ids.is_sorted_by(|left, right| left < right), "{ids:?}");
    }
}

#[test]
fn a_filter_returns_the_animals_of_its_status_alone() {
    let app = TestApp::start();
    let ids = app.add_many(12);

    for (status, first) in [("available", 1), ("pending", 2), ("sold", 3)] {
        let response = app.get(&format!("/v1/pets?status={status}"));
        assert_eq!(response.ids(), [ids[first], ids[first + 4], ids[first + 8]]);
        assert!(response.json().as_array().unwrap().iter().all(|pet| pet["status"] == status));
    }
}

#[test]
fn the_limit_counts_what_the_filter_lets_pass() {
    let app = TestApp::start();
    let ids = app.add_many(12);

    assert_eq!(app.get("/v1/pets?limit=2&status=sold").ids(), [ids[3], ids[7]]);
    assert_eq!(app.get("/v1/pets?status=sold&limit=3").ids(), [ids[3], ids[7], ids[11]]);
}

#[test]
fn a_list_without_a_filter_holds_animals_without_a_status() {
    let app = TestApp::start();
    let ids = [app.add(None), app.add(Some("sold")), app.add(None)];

    assert_eq!(app.get("/v1/pets").ids(), ids);
}

#[test]
fn unknown_query_parameters_are_ignored() {
    let app = TestApp::start();
    let ids = app.add_many(3);

    for query in
        ["?", "?&", "?x=1", "?x", "?=", "?x=1&x=2", "?Limit=0&STATUS=x&Cursor=x", "?limits=0&limit%20=0", "?%FF"]
    {
        assert_eq!(app.get(&format!("/v1/pets{query}")).ids(), ids);
    }
    assert_eq!(app.get("/v1/pets?x=1&limit=2&y=2").ids(), ids[..2]);
}

#[test]
fn percent_encoded_parameters_are_what_they_stand_for() {
    let app = TestApp::start();
    let ids = app.add_many(12);

    assert_eq!(app.get("/v1/pets?limit=%31%30").ids(), ids[..10]);
    assert_eq!(app.get("/v1/pets?%6Cimit=2&st%61tus=s%6Fld").ids(), [ids[3], ids[7]]);
}

#[test]
fn head_says_what_get_says_without_a_body() {
    let app = TestApp::start();
    app.add_many(3);

    for query in ["", "?limit=2", "?status=sold", "?limit=0"] {
        let path = format!("/v1/pets{query}");
        app.request("HEAD", &path).send().assert_head_of(&app.get(&path));
    }
}
