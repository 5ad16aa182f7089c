//! Requests as bytes, and checks of the responses to them.

use crate::prelude::*;

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
    format!(
        "POST /v1/pets HTTP/1.1\r\n{}Content-Type: application/json\r\n{lines}\r\n",
        fields()
    )
}

/// A create whose head was accepted, and its body, which was not sent.
#[track_caller]
pub(crate) fn begin_create(app: &TestApp) -> (RawConnection, String) {
    let body = pet("Rex");
    let mut connection = app.request("POST", "/v1/pets").begin_json(body.len());
    connection.response().assert_status(100);
    (connection, body)
}

/// A pet as a request body.
pub(crate) fn pet(name: &str) -> String {
    format!(r#"{{"name":"{name}","categoryId":1}}"#)
}

/// A complete POST request that creates a pet.
pub(crate) fn post(name: &str) -> String {
    let body = pet(name);
    format!(
        "{}{body}",
        post_head(&format!("Content-Length: {}\r\n", body.len()))
    )
}

/// The same in chunks, with extensions, and with a trailer, which is neither a header nor a request.
pub(crate) fn post_chunked(name: &str) -> String {
    let body = pet(name);
    let (left, right) = body.split_at(9);
    let chunk = |text: &str| format!("{:x};extension=\"a;b\"\r\n{text}\r\n", text.len());
    let head = post_head("Transfer-Encoding: chunked\r\n");
    let trailer = "Content-Length: 99\r\nAuthorization: Bearer none\r\n";
    head + &chunk(left) + &chunk(right) + "0;last\r\n" + trailer + "\r\n"
}

/// A complete POST request that must never be carried out.
pub(crate) fn smuggled() -> String {
    post("Smuggled")
}

/// The status codes of these responses.
pub(crate) fn statuses(responses: &[Response]) -> Vec<u16> {
    responses.iter().map(|response| response.status).collect()
}

/// The next response, which has no body if the request was a HEAD.
#[track_caller]
pub(crate) fn response_to(method: &str, connection: &mut RawConnection) -> Response {
    if method == "HEAD" {
        connection.response_to_head()
    } else {
        connection.response()
    }
}

/// The names of all pets, listed on another connection.
#[track_caller]
pub(crate) fn names(app: &TestApp) -> Vec<String> {
    let pets = app.get("/v1/pets?limit=100").assert_status(200).json();
    let pets: Vec<Value> = serde_json::from_value(pets).expect("an array");
    let name = |pet: &Value| pet["name"].as_str().expect("a name").to_owned();
    pets.iter().map(name).collect()
}

/// Asserts that the service responds on another connection, and that no pet was created.
#[track_caller]
pub(crate) fn assert_no_pet(app: &TestApp) {
    assert_eq!(names(app), Vec::<String>::new());
}

/// Asserts that the connection goes on with a request that finds no pet.
#[track_caller]
pub(crate) fn assert_goes_on(connection: &mut RawConnection) {
    connection.send(get("/v1/pets"));
    assert_eq!(connection.response().text(), "[]");
}

/// Asserts that the response ends its connection, and that a request after it is not carried out.
#[track_caller]
pub(crate) fn assert_ends(connection: &mut RawConnection, response: &Response) {
    assert!(response.closes(), "{response:?}");
    connection.send(smuggled());
    connection.finish_sending();
    connection.assert_closed();
}

/// Asserts that these bytes get one response, with this status, which ends the connection, and that the request after
/// these bytes is not carried out.
#[track_caller]
pub(crate) fn assert_refused(app: &TestApp, bytes: impl AsRef<[u8]>, status: u16) -> Response {
    let mut connection = app.send([bytes.as_ref(), smuggled().as_bytes()].concat());
    let response = connection.response();
    response.assert_status(status);
    assert_ends(&mut connection, &response);
    assert_no_pet(app);
    response
}
