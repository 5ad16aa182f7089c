//! `createPet`: bodies that are no JSON object, and JSON in its less usual forms.

use serde_json::json;

use crate::test_app::TestApp;

#[test]
fn json_that_is_no_object_is_refused() {
    let app = TestApp::start();

    for body in [
        "null",
        "true",
        "7",
        r#""Rex""#,
        "[]",
        r#"[{"name":"Rex","categoryId":7}]"#,
        // A reader that takes members by their position would take this one.
        r#"["Rex",7,"sold"]"#,
    ] {
        app.post(body).assert_error(400, "invalid_body");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    let app = TestApp::start();

    for body in [
        " ",
        "\0",
        "{",
        "}",
        "{]",
        "name=Rex&categoryId=7",
        r#"{"name":"Rex","categoryId":7"#,
        r#"{"name":"Rex","categoryId":7}}"#,
        r#"{"name":"Rex","categoryId":7} {}"#,
        r#"{"name":"Rex","categoryId":7,}"#,
        r#"{"name":"Rex" "categoryId":7}"#,
        r#"{"name":"Rex","categoryId":7 /* seven */}"#,
        "{'name':'Rex','categoryId':7}",
        r#"{name:"Rex",categoryId:7}"#,
        r#"{"name":"Rex,"categoryId":7}"#,
        r#"{"name":"\x52ex","categoryId":7}"#,
        r#"{"name":"\u00","categoryId":7}"#,
        r#"{"name":NaN,"categoryId":7}"#,
        r#"{"name":"Rex","categoryId":NaN}"#,
        r#"{"name":"Rex","categoryId":7,"weight":Infinity}"#,
        r#"{"name":"Rex","categoryId":7,"owner":undefined}"#,
        "{\"name\":\"R\nex\",\"categoryId\":7}",
        "{\"name\":\"R\0ex\",\"categoryId\":7}",
        "\u{feff}{\"name\":\"Rex\",\"categoryId\":7}",
    ] {
        app.post(body).assert_error(400, "invalid_body");
    }
    assert_eq!(app.get("/v1/pets").json(), json!([]));
}

#[test]
fn a_body_that_is_not_utf_8_is_refused() {
    let app = TestApp::start();

    let utf_16: Vec<u8> = r#"{"name":"Rex","categoryId":7}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for body in [
        &b"{\"name\":\"\xff\",\"categoryId\":7}"[..],
        b"{\"name\":\"R\xe9x\",\"categoryId\":7}",
        // A surrogate, encoded as if it were a character.
        b"{\"name\":\"\xed\xa0\x80\",\"categoryId\":7}",
        // NUL in two bytes.
        b"{\"name\":\"\xc0\x80\",\"categoryId\":7}",
        b"{\"name\":\"Rex\",\"categoryId\":7,\"owner\":\"\xff\"}",
        b"{\"name\":\"Rex\",\"categoryId\":7,\"\xff\":1}",
        b"\xff\xfe",
        &utf_16,
    ] {
        app.post(body).assert_error(400, "invalid_body");
    }
    assert_eq!(app.get("/v1/pets").json(), json!([]));
}

#[test]
fn depth_alone_is_no_reason_to_refuse_what_is_ignored() {
    let app = TestApp::start();
    let deep = format!("{}{}", "[".repeat(8000), "]".repeat(8000));

    let pet = app.create(format!(r#"{{"name":"Rex","categoryId":7,"deep":{deep}}}"#));

    assert_eq!(pet["name"], "Rex");
}

#[test]
fn a_deep_body_is_refused_as_any_other() {
    let app = TestApp::start();
    let deep = format!("{}{}", "[".repeat(8000), "]".repeat(8000));
    let deep_objects = format!("{}1{}", r#"{"a":"#.repeat(2500), "}".repeat(2500));

    app.post(&deep).assert_error(400, "invalid_body");
    app.post("[".repeat(16_000)).assert_error(400, "invalid_body");
    app.post(r#"{"a":"#.repeat(3000)).assert_error(400, "invalid_body");
    app.post(&deep_objects).assert_names("invalid_body", &["name", "categoryId"]);
    app.post(format!(r#"{{"name":{deep},"categoryId":1}}"#)).assert_names("invalid_body", &["name"]);
    app.post(format!(r#"{{"name":"Rex","categoryId":{deep_objects},"status":[]}}"#))
        .assert_names("invalid_body", &["categoryId", "status"]);
}

#[test]
fn white_space_order_and_escapes_of_the_members_do_not_matter() {
    let app = TestApp::start();

    for body in [
        "{\"name\":\"Rex\",\"categoryId\":7,\"status\":\"sold\"}",
        "\r\n\t {\t\"name\" : \"Rex\" ,\n \"categoryId\":\r7 , \"status\" :\"sold\" } \n",
        "{\"status\":\"sold\",\"categoryId\":7,\"name\":\"Rex\"}",
        "{\"\\u006eame\":\"Rex\",\"category\\u0049d\":7,\"status\":\"s\\u006fld\"}",
    ] {
        let pet = app.create(body);
        let id = pet["id"].as_i64().unwrap();
        assert_eq!(pet, json!({ "id": id, "name": "Rex", "categoryId": 7, "status": "sold" }));
    }
}
