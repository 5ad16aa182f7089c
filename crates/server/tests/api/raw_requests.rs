//! Requests as bytes, and checks for every response to them.

use animal_store_test_servers::{RawConnection, Response};

use crate::test_app::{TOKEN, TestApp};

/// The pet that a smuggled request would create.
const SMUGGLED: &str = r#"{"name":"Smuggled","categoryId":666}"#;

/// The header lines that make a request acceptable.
pub(crate) fn fields() -> String {
    format!("Host: store.example\r\nAuthorization: Bearer {TOKEN}\r\n")
}

/// A complete GET request.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\n{}\r\n", fields())
}

/// The same request with more header lines.
pub(crate) fn with_lines(request: &str, lines: &str) -> String {
    request.replacen("\r\n", &format!("\r\n{lines}"), 1)
}

/// The head of a POST request with more header lines, each with its line end.
pub(crate) fn post_head(lines: &str) -> String {
    format!("POST /v1/pets HTTP/1.1\r\n{}Content-Type: application/json\r\n{lines}\r\n", fields())
}

/// A POST request in flight: its head was sent, with these lines; its body was not.
#[track_caller]
pub(crate) fn begin_post(app: &TestApp, lines: &str) -> RawConnection {
    let mut connection = app.send(post_head(&format!("{lines}Expect: 100-continue\r\n")));
    // The status 100 proves that the request is in flight.
    assert_eq!(connection.response().status, 100);
    connection
}

/// A pet as a request body.
pub(crate) fn pet(name: &str) -> String {
    format!(r#"{{"name":"{name}","categoryId":1}}"#)
}

/// A POST request with this body and its length.
fn post_body(body: &str) -> String {
    format!("{}{body}", post_head(&format!("Content-Length: {}\r\n", body.len())))
}

/// A complete POST request that creates a pet.
pub(crate) fn post(name: &str) -> String {
    post_body(&pet(name))
}

/// A complete POST request that must never be carried out.
pub(crate) fn smuggled() -> String {
    post_body(SMUGGLED)
}

/// The status codes of these responses.
pub(crate) fn statuses(responses: &[Response]) -> Vec<u16> {
    responses.iter().map(|response| response.status).collect()
}

/// The names of all pets, listed on another connection.
#[track_caller]
pub(crate) fn names(app: &TestApp) -> Vec<String> {
    let pets = app.get("/v1/pets?limit=100").assert_status(200).json();
    pets.as_array().expect("an array").iter().map(|pet| pet["name"].as_str().expect("a name").to_owned()).collect()
}

/// Asserts that the service responds on another connection, and that no pet was created.
#[track_caller]
pub(crate) fn assert_no_pet(app: &TestApp) {
    assert_eq!(names(app), Vec::<String>::new());
}

/// Asserts that the connection of this response ends if it says so, and is usable otherwise; and that no pet exists.
#[track_caller]
pub(crate) fn assert_nothing_smuggled(app: &TestApp, connection: &mut RawConnection, response: &Response) {
    if response.closes() {
        connection.finish_sending();
        connection.assert_closed();
    } else {
        connection.send(get("/v1/pets"));
        assert_eq!(connection.response().text(), "[]");
    }
    assert_no_pet(app);
}

/// Asserts that these bytes get one response, with one of these statuses, that the connection is closed, and that the
/// request after these bytes gets no response and is not carried out.
#[track_caller]
pub(crate) fn assert_refused(app: &TestApp, bytes: impl AsRef<[u8]>, allowed: &[u16]) {
    let bytes = bytes.as_ref();
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
    let mut connection = app.connect();
    // The service may close the connection before all bytes are sent.
    let _ = connection.try_send([bytes, smuggled().as_bytes()].concat());
    let statuses = statuses(&connection.responses_to_end());
    assert!(
        matches!(statuses[..], [status] if allowed.contains(&status)),
        "{statuses:?}, not {allowed:?}, to {shown:?}"
    );
    assert_no_pet(app);
}
