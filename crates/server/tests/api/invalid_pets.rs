//! `createPet`: invalid bodies. The unit tests of the request, the name and the integer cover every value.

use crate::test_app::TestApp;

#[test]
fn every_invalid_member_is_named_in_one_response() {
    let app = TestApp::start();

    for (body, names) in [
        (r#"{"Name":"Rex","categoryID":7}"#, &["name", "categoryId"][..]),
        (r#"{"name":"Rex","name":1,"name":null,"categoryId":7,"categoryId":7}"#, &["name", "categoryId"]),
        (r#"{"name":"Rex","categoryId":5.5,"status":null}"#, &["categoryId", "status"]),
        (r#"{"status":null,"categoryId":"7","name":" "}"#, &["name", "categoryId", "status"]),
    ] {
        app.post(body).assert_problems("invalid_body", names);
    }
}

#[test]
fn a_body_that_is_not_a_json_object_is_refused() {
    let app = TestApp::start();

    for body in [
        &b" "[..],
        b"null",
        // A parser that reads members by position would accept this body.
        br#"["Rex",7,"sold"]"#,
        b"name=Rex&categoryId=7",
        br#"{"name":"Rex","categoryId":7} {}"#,
        br#"{"name":"Rex","categoryId":7,}"#,
        br#"{"name":"Rex","categoryId":7 /* seven */}"#,
        br#"{"name":"\x52ex","categoryId":7}"#,
        br#"{"name":"Rex","categoryId":05}"#,
        br#"{"name":"Rex","categoryId":7,"weight":Infinity}"#,
        // Not UTF-8: Latin-1, a surrogate, NUL in two bytes, an ignored member, UTF-16.
        b"{\"name\":\"R\xe9x\",\"categoryId\":7}",
        b"{\"name\":\"\xed\xa0\x80\",\"categoryId\":7}",
        b"{\"name\":\"\xc0\x80\",\"categoryId\":7}",
        b"{\"name\":\"Rex\",\"categoryId\":7,\"\xff\":1}",
        b"\xff\xfe{\0}\0",
    ] {
        app.post(body).assert_error(400, "invalid_body");
    }
}

#[test]
fn a_deep_body_is_treated_as_any_other() {
    let app = TestApp::start();
    let deep = format!("{}{}", "[".repeat(8000), "]".repeat(8000));
    let deep_objects = format!("{}1{}", r#"{"a":"#.repeat(2500), "}".repeat(2500));

    app.post(&deep).assert_error(400, "invalid_body");
    app.post(r#"{"a":"#.repeat(3000)).assert_error(400, "invalid_body");
    app.post(&deep_objects).assert_problems("invalid_body", &["name", "categoryId"]);
    app.post(format!(r#"{{"name":{deep},"categoryId":1}}"#)).assert_problems("invalid_body", &["name"]);
    app.post(format!(r#"{{"name":"Rex","categoryId":{deep_objects},"status":[]}}"#))
        .assert_problems("invalid_body", &["categoryId", "status"]);
    app.create(format!(r#"{{"name":"Rex","categoryId":7,"deep":{deep}}}"#));
}

#[test]
fn a_message_never_shows_the_implementation_nor_the_request() {
    let app = TestApp::start();
    let forbidden = "serde expected line column :: actix rust i64 u8 utf8error parseint err( marker";

    for body in [
        "",
        "x",
        r#"{"marker":marker}"#,
        r#""marker""#,
        r#"["marker",7]"#,
        r#"{"name":"Rex","categoryId":7} marker"#,
        r#"{"name":["marker"],"categoryId":"marker","status":"marker"}"#,
        r#"{"name":"x\u0000","categoryId":1e400,"status":{}}"#,
    ] {
        let message = app.post(body).assert_error(400, "invalid_body").to_lowercase();
        assert!(!forbidden.split(' ').any(|word| message.contains(word)), "{message}");
        assert_eq!(app.post(body).assert_error(400, "invalid_body").to_lowercase(), message, "{body}");
    }
}
