//! `listPets`: parameters that are refused, never bent into shape.

use crate::{link, test_app::TestApp};

#[track_caller]
fn assert_refused(app: &TestApp, query: &str, names: &[&str]) {
    app.get(&format!("/v1/pets?{query}")).assert_names("invalid_query", names);
}

#[test]
fn a_limit_is_plain_digits_from_1_to_100() {
    let app = TestApp::start();
    app.add_many(3);

    for limit in [
        "0",
        "00",
        "101",
        "256",
        "257",
        "-1",
        "-0",
        "+1",
        "%2B1",
        "01",
        "020",
        "1.0",
        "1e1",
        "0x10",
        "%201",
        "1%20",
        "1+",
        "1%00",
        "1,2",
        "",
        "ten",
        "null",
        "NaN",
        "%D9%A1",
        "%EF%BC%91",
        "4294967297",
        "9223372036854775808",
        "18446744073709551617",
        "99999999999999999999999999999999",
    ] {
        assert_refused(&app, &format!("limit={limit}"), &["limit"]);
    }
    assert_refused(&app, "limit", &["limit"]);
}

#[test]
fn a_status_is_one_of_the_three_words_as_they_are_written() {
    let app = TestApp::start();
    app.add_many(3);

    for status in [
        "",
        "Available",
        "SOLD",
        "sold%20",
        "%20sold",
        "+sold",
        "sold%00",
        "available,sold",
        "adopted",
        "null",
        "none",
        "%22sold%22",
        "%FF",
        "0",
    ] {
        assert_refused(&app, &format!("status={status}"), &["status"]);
    }
    assert_refused(&app, "status", &["status"]);
}

#[test]
fn a_cursor_is_one_that_a_next_link_gave() {
    let app = TestApp::start();
    app.add_many(3);
    let next = link::target(&app.get("/v1/pets?limit=1"), "next").expect("a next page");
    let (_, cursor) = next.split_once("cursor=").expect("a cursor");
    let shorter = &cursor[..cursor.len() - 1];

    for invalid in [
        "",
        "x",
        "1",
        "-1",
        "null",
        "%00",
        "%FF",
        "%C3%A9",
        shorter,
        &format!("{cursor}A"),
        &format!("{cursor}="),
        &format!("{cursor}%3D"),
        &format!("{cursor}%20"),
        &format!("%20{cursor}"),
        &format!("{cursor}{cursor}"),
        &format!("{shorter}%2B"),
        &format!("{shorter}%2F"),
        &format!("{shorter}!"),
        &"A".repeat(4096),
    ] {
        assert_refused(&app, &format!("cursor={invalid}"), &["cursor"]);
    }
    assert_refused(&app, "cursor", &["cursor"]);
    assert_refused(&app, &format!("limit=1&cursor={cursor}%00"), &["cursor"]);
}

#[test]
fn a_position_has_one_spelling() {
    let app = TestApp::start();
    let letters = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain(*b"-_").map(char::from);

    // Eight bytes fill ten letters and four bits of an eleventh, whose other two bits are zero.
    for last in letters {
        let query = format!("cursor=AAAAAAAAAA{last}");
        if "AEIMQUYcgkosw048".contains(last) {
            assert_eq!(app.get(&format!("/v1/pets?{query}")).text(), "[]");
        } else {
            assert_refused(&app, &query, &["cursor"]);
        }
    }
}

#[test]
fn no_position_is_negative() {
    let app = TestApp::start();
    app.add_many(3);

    assert_eq!(app.get("/v1/pets?cursor=f_________8").text(), "[]");
    for negative in ["gAAAAAAAAAA", "gAAAAAAAAAE", "__________8"] {
        assert_refused(&app, &format!("cursor={negative}"), &["cursor"]);
    }
}

#[test]
fn a_parameter_given_twice_is_refused_even_where_both_agree() {
    let app = TestApp::start();
    app.add_many(3);
    let next = link::target(&app.get("/v1/pets?limit=1"), "next").expect("a next page");
    let cursor = next.split('&').next_back().expect("a cursor");

    assert_refused(&app, "limit=5&limit=5", &["limit"]);
    assert_refused(&app, "limit=5&limit=6", &["limit"]);
    assert_refused(&app, "limit=5&x=1&%6Cimit=5", &["limit"]);
    assert_refused(&app, "limit=5&limit=", &["limit"]);
    assert_refused(&app, "status=sold&status=sold", &["status"]);
    assert_refused(&app, "status=sold&status=pending", &["status"]);
    assert_refused(&app, &format!("{cursor}&{cursor}"), &["cursor"]);
    assert_refused(&app, "limit=1&limit=1&status=sold&status=sold", &["limit", "status"]);
}

#[test]
fn every_parameter_that_is_wrong_is_named_in_one_answer() {
    let app = TestApp::start();

    assert_refused(&app, "limit=0&status=x", &["limit", "status"]);
    assert_refused(&app, "status=x&limit=0", &["limit", "status"]);
    assert_refused(&app, "cursor=x&limit=0", &["limit", "cursor"]);
    assert_refused(&app, "cursor=x&status=x&limit=5", &["status", "cursor"]);
    assert_refused(&app, "cursor=x&status=x&limit=101", &["limit", "status", "cursor"]);
}
