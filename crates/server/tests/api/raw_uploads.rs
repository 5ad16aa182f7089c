//! Uploads that are refused before they end, and uploads that end early. The unit tests of `http1/src/exchange` cover
//! all timeouts of a connection by a paused clock.

use std::{io::Write, thread};

use crate::prelude::*;

/// An upload that is refused before it ends.
struct Upload {
    status: u16,
    bytes: Vec<u8>,
}

/// An upload for each reason, with the length of the body and in chunks. The body consists of requests that would create
/// a pet.
fn uploads(length: usize) -> Vec<Upload> {
    let body = smuggled().repeat(length / smuggled().len());
    let chunk = |bytes: &[u8]| {
        let text = str::from_utf8(bytes).expect("ASCII");
        format!("{:x}\r\n{text}\r\n", bytes.len())
    };
    let chunks: Vec<_> = body.as_bytes().chunks(50_000).map(chunk).collect();
    let whole = post_head(&format!("Content-Length: {}\r\n", body.len())) + &body;
    let chunked = post_head("Transfer-Encoding: chunked\r\n") + &chunks.concat() + "0\r\n\r\n";
    let mut uploads = Vec::new();
    for request in [whole, chunked] {
        for (status, old, new) in [
            (401, "Authorization", "X-Authorization"),
            (413, "", ""),
            (415, "application/json", "text/plain"),
        ] {
            let bytes = request.replacen(old, new, 1).into_bytes();
            uploads.push(Upload { status, bytes });
        }
    }
    uploads
}

#[test]
fn a_client_that_reads_while_it_uploads_sees_the_refusal() {
    let app = TestApp::start();
    // Larger than a body may be, and smaller than the input that is dropped.
    for Upload { status, bytes } in uploads(512 * 1024) {
        let mut connection = app.connect();
        let mut sender = connection.sender();
        let sending = thread::spawn(move || sender.write_all(&bytes));

        let response = connection.response();

        response.assert_status(status);
        assert!(response.closes(), "{response:?}");
        let sent = sending.join().expect("no panic");
        sent.unwrap_or_else(|error| panic!("{status}: {error}"));
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_pet(&app);
}

#[test]
fn a_small_body_is_read_before_its_refusal_which_does_not_end_the_connection() {
    let app = TestApp::start();
    let mut uploads = uploads(16 * 1024);
    uploads.retain(|upload| upload.status != 413);
    for Upload { status, bytes } in uploads {
        let (first, last) = bytes.split_at(bytes.len() - 1);
        let mut connection = app.send(first);
        connection.send(last);
        let response = connection.response();
        response.assert_status(status);
        assert!(!response.closes(), "{response:?}");
        assert_goes_on(&mut connection);
    }
    assert_no_pet(&app);
}

#[test]
fn a_connection_that_ends_at_any_byte_creates_nothing() {
    let app = TestApp::start();
    for request in [post("Rex"), post_chunked("Rex")] {
        let head = request.find("\r\n\r\n").expect("the end of the head") + 4;
        for end in 0..request.len() {
            let mut connection = app.send(&request[..end]);
            connection.finish_sending();
            let expected: &[u16] = if end < head { &[] } else { &[400] };
            assert_eq!(statuses(&connection.responses_to_end()), expected, "{end}");
        }
    }
    assert_no_pet(&app);
}
