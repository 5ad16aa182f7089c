//! Requests as bytes, and what must hold whatever was sent.

use crate::{
    raw_connection::RawConnection,
    test_app::{TOKEN, TestApp},
};

/// The animal that a smuggled request would add.
const SMUGGLED: &str = r#"{"name":"Smuggled","categoryId":666}"#;

/// The fields that make a request acceptable.
pub(crate) fn fields() -> String {
    format!("Host: store.example\r\nAuthorization: Bearer {TOKEN}\r\n")
}

/// GET, complete.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\n{}\r\n", fields())
}

/// The head of a POST with these further lines, each with its line end.
pub(crate) fn post_head(lines: &str) -> String {
    format!("POST /v1/pets HTTP/1.1\r\n{}Content-Type: application/json\r\n{lines}\r\n", fields())
}

/// A POST that is in flight: its head was sent, with these further lines, and its body is still to come.
#[track_caller]
pub(crate) fn begin_post(app: &TestApp, lines: &str) -> RawConnection {
    let mut connection = RawConnection::open(app.address);
    connection.send(post_head(&format!("{lines}Expect: 100-continue\r\n")));
    // The invitation to continue says that the request is in flight.
    assert_eq!(connection.response().status, 100);
    connection
}

/// An animal as a body.
pub(crate) fn animal(name: &str) -> String {
    format!(r#"{{"name":"{name}","categoryId":1}}"#)
}

/// POST of an animal, complete.
pub(crate) fn post(name: &str) -> String {
    let body = animal(name);
    format!("{}{body}", post_head(&format!("Content-Length: {}\r\n", body.len())))
}

/// POST of the animal that must never be there.
pub(crate) fn smuggled() -> String {
    format!("{}{SMUGGLED}", post_head(&format!("Content-Length: {}\r\n", SMUGGLED.len())))
}

/// The names of all animals, asked for on a connection of its own.
#[track_caller]
pub(crate) fn names(app: &TestApp) -> Vec<String> {
    let response = app.get("/v1/pets?limit=100");
    assert_eq!(response.status, 200, "{}", response.text());
    let pets = response.json();
    let names = pets.as_array().expect("an array").iter().map(|pet| pet["name"].as_str().expect("a name").to_owned());
    names.collect()
}

/// The service answers a fresh connection, and there is no animal.
#[track_caller]
pub(crate) fn assert_no_animal(app: &TestApp) {
    assert_eq!(names(app), Vec::<String>::new());
}

/// What is sent is answered once, with one of these statuses; the connection is closed, and the request that follows
/// on it is neither answered nor carried out.
#[track_caller]
pub(crate) fn assert_refused(app: &TestApp, bytes: impl AsRef<[u8]>, statuses: &[u16]) {
    let bytes = bytes.as_ref();
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
    let mut connection = RawConnection::open(app.address);
    // It may be closed before all of it was sent.
    let _ = connection.try_send([bytes, smuggled().as_bytes()].concat());
    let responses = connection.responses_to_end();
    let given: Vec<_> = responses.iter().map(|response| response.status).collect();
    assert!(given.len() == 1 && statuses.contains(&given[0]), "{given:?} instead of one of {statuses:?} to {shown:?}");
    assert_no_animal(app);
}
