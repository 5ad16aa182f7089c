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
    let shorter = &cursor[..cursor.len() - 1];

    for invalid in [
        "",
        "1",
        "%00",
        "%FF",
        "%C3%A9",
        shorter,
        // A cursor of the same position with other padding bits.
        &format!("{shorter}F"),
        // A negative position.
        "gAAAAAAAAAA",
        &format!("{cursor}A"),
        &format!("{cursor}%3D"),
        &format!("{cursor}%20"),
        &format!("{cursor}{cursor}"),
        &format!("{shorter}%2B"),
        &"A".repeat(4096),
    ] {
        assert_refused(&app, &format!("cursor={invalid}"), &["cursor"]);
    }
    assert_refused(&app, "cursor", &["cursor"]);
}

#[test]
fn every_invalid_parameter_is_named_in_one_response() {
    let app = TestApp::start();

    assert_refused(&app, "status=x&limit=0", &["limit", "status"]);
    assert_refused(&app, "cursor=x&status=x&limit=5", &["status", "cursor"]);
    assert_refused(&app, "cursor=x&status=x&limit=101", &["limit", "status", "cursor"]);
}

#[test]
fn a_message_never_repeats_a_parameter() {
    let app = TestApp::start();

    for query in ["limit=marker&status=marker&cursor=marker", "status=%3Cmarker%3E"] {
        let message = app.get(&format!("/v1/pets?{query}")).assert_error(400, "invalid_query");
        assert!(!message.contains("marker"), "{message}");
    }
}
