//! `listPets`: invalid parameters are refused, never adjusted. The unit tests of the query cover every value.

use crate::{link, test_app::TestApp};

#[track_caller]
fn assert_refused(app: &TestApp, query: &str, names: &[&str]) {
    app.get(&format!("/v1/pets?{query}")).assert_problems("invalid_query", names);
}

#[test]
fn only_the_cursor_of_a_next_link_is_valid() {
    let app = TestApp::start();
    app.create_pets(2);
    let next = link::target(&app.get("/v1/pets?limit=1"), "next").expect("a next page");
    let (_, cursor) = next.split_once("cursor=").expect("a cursor");

    for invalid in ["", "1", "%FF", &cursor[1..], &format!("{cursor}%3D"), &format!("{cursor}{cursor}")] {
        assert_refused(&app, &format!("cursor={invalid}"), &["cursor"]);
    }
    assert_refused(&app, "cursor", &["cursor"]);
}

#[test]
fn every_invalid_parameter_is_named_in_one_response_and_none_is_repeated() {
    let app = TestApp::start();

    assert_refused(&app, "cursor=x&status=x&limit=101", &["limit", "status", "cursor"]);
    let message = app.get("/v1/pets?limit=marker&status=%3Cmarker%3E&cursor=marker").assert_error(400, "invalid_query");
    assert!(!message.contains("marker"), "{message}");
}
