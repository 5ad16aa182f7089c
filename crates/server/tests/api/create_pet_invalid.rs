//! `createPet`: members that are missing, wrong or given twice, all named in one answer.

use serde_json::json;

use crate::test_app::TestApp;

#[test]
fn a_required_member_that_is_missing_is_named() {
    let app = TestApp::start();

    for (body, names) in [
        (r#"{"categoryId":7}"#, &["name"][..]),
        (r#"{"name":"Rex"}"#, &["categoryId"]),
        ("{}", &["name", "categoryId"]),
        (r#"{"status":"sold"}"#, &["name", "categoryId"]),
        (r#"{"Name":"Rex","categoryID":7}"#, &["name", "categoryId"]),
    ] {
        app.post(body).assert_names("invalid_body", names);
    }
}

#[test]
fn a_name_of_another_type_is_refused() {
    let app = TestApp::start();

    for name in ["null", "true", "1", "1.5", "[]", r#"["Rex"]"#, "{}", r#"{"first":"Rex"}"#] {
        app.post(format!(r#"{{"name":{name},"categoryId":7}}"#)).assert_names("invalid_body", &["name"]);
    }
}

#[test]
fn a_status_is_one_of_the_three_words_as_they_are_written() {
    let app = TestApp::start();

    for status in [
        "null",
        r#""""#,
        r#""Available""#,
        r#""SOLD""#,
        r#"" sold""#,
        r#""sold ""#,
        r#""sold\u0000""#,
        r#""adopted""#,
        r#""null""#,
        r#""\ud800""#,
        "0",
        "true",
        "[]",
        r#"["sold"]"#,
        "{}",
        r#"{"sold":null}"#,
    ] {
        app.post(format!(r#"{{"name":"Rex","categoryId":7,"status":{status}}}"#))
            .assert_names("invalid_body", &["status"]);
    }
}

#[test]
fn every_offending_member_is_named_in_one_answer() {
    let app = TestApp::start();

    for (body, names) in [
        (r#"{"name":1,"status":"x"}"#, &["name", "categoryId", "status"][..]),
        (r#"{"status":null,"categoryId":"7","name":" "}"#, &["name", "categoryId", "status"]),
        (r#"{"name":"","categoryId":5.5}"#, &["name", "categoryId"]),
        (r#"{"name":"","categoryId":5,"status":1}"#, &["name", "status"]),
        (r#"{"name":"Rex","categoryId":[],"status":[]}"#, &["categoryId", "status"]),
    ] {
        app.post(body).assert_names("invalid_body", names);
    }
}

#[test]
fn the_message_says_what_is_wrong_with_each_member() {
    let app = TestApp::start();

    let message = app.post(r#"{"name":" ","categoryId":"7"}"#).assert_error(400, "invalid_body");

    assert_eq!(message, "name must not be blank; categoryId must be a 64-bit integer");
}

#[test]
fn a_member_given_twice_is_refused_even_where_both_agree() {
    let app = TestApp::start();

    for (body, names) in [
        (r#"{"name":"Rex","name":"Rex","categoryId":7}"#, &["name"][..]),
        (r#"{"name":"Rex","n\u0061me":"Tom","categoryId":7}"#, &["name"]),
        (r#"{"name":"Rex","categoryId":7,"categoryId":7}"#, &["categoryId"]),
        (r#"{"status":"sold","name":"Rex","categoryId":7,"status":"sold"}"#, &["status"]),
        (r#"{"status":"x","name":"Rex","categoryId":7,"status":"sold"}"#, &["status"]),
        (r#"{"name":"Rex","name":1,"name":null,"categoryId":7,"categoryId":8}"#, &["name", "categoryId"]),
    ] {
        app.post(body).assert_names("invalid_body", names);
    }
}

#[test]
fn nothing_is_added_by_a_request_that_is_refused() {
    let app = TestApp::start();
    let pet = app.create(r#"{"name":"Rex","categoryId":7}"#);

    for body in ["", "{", "[]", "{}", r#"{"name":"Tom","categoryId":7,"status":"x"}"#] {
        app.post(body).assert_error(400, "invalid_body");
    }

    assert_eq!(app.get("/v1/pets").json(), json!([pet]));
}
