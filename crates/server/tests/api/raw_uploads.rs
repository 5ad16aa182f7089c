//! Uploads that are refused before they end, and uploads that end early. The unit tests of `http1/src/exchange` cover
//! all timeouts of a connection by a paused clock.

use std::{io::Write, thread};

use crate::prelude::*;

/// An upload that is refused before it ends.
#[derive(Debug, Clone, Copy)]
struct Upload {
    status: u16,
    /// What the head has, in place of what.
    head: [&'static str; 2],
    is_chunked: bool,
}

/// Each reason, with the length of the body and in chunks.
fn uploads() -> Vec<Upload> {
    let mut uploads = Vec::new();
    for (status, head) in [
        (401, ["X-Authorization", "Authorization"]),
        (413, ["", ""]),
        (415, ["text/plain", "application/json"]),
    ] {
        uploads.extend([false, true].map(|is_chunked| Upload {
            status,
            head,
            is_chunked,
        }));
    }
    uploads
}

impl Upload {
    /// The request, whose body consists of requests that would create a pet.
    fn bytes(self, length: usize) -> Vec<u8> {
        let body = smuggled().repeat(length / smuggled().len());
        let [new, old] = self.head;
        let with_head = |lines: &str| post_head(lines).replacen(old, new, 1).into_bytes();
        if !self.is_chunked {
            let mut bytes = with_head(&format!("Content-Length: {}\r\n", body.len()));
            bytes.extend(body.into_bytes());
            return bytes;
        }
        let mut bytes = with_head("Transfer-Encoding: chunked\r\n");
        for chunk in body.as_bytes().chunks(50_000) {
            let size = format!("{:x}\r\n", chunk.len());
            bytes.extend([size.as_bytes(), chunk, b"\r\n"].concat());
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes
    }
}

#[test]
fn a_client_that_reads_while_it_uploads_sees_the_refusal() {
    let app = TestApp::start();
    for upload in uploads() {
        let mut connection = app.connect();
        let mut sender = connection.sender();
        // Larger than a body may be, and smaller than the input that is dropped.
        let bytes = upload.bytes(512 * 1024);
        let sending = thread::spawn(move || sender.write_all(&bytes));

        let response = connection.response();

        response.assert_status(upload.status);
        assert!(response.closes(), "{response:?}");
        let sent = sending.join().expect("no panic");
        sent.unwrap_or_else(|error| panic!("{upload:?}: {error}"));
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_pet(&app);
}

#[test]
fn a_small_body_is_read_before_its_refusal_which_does_not_end_the_connection() {
    let app = TestApp::start();
    for upload in uploads() {
        if upload.status == 413 {
            continue;
        }
        let bytes = upload.bytes(16 * 1024);
        let (first, last) = bytes.split_at(bytes.len() - 1);
        let mut connection = app.send(first);
        connection.send(last);
        let response = connection.response();
        response.assert_status(upload.status);
        assert!(!response.closes(), "{upload:?}: {response:?}");
        assert_goes_on(&mut connection);
    }
    assert_no_pet(&app);
}

#[test]
fn a_connection_that_ends_at_any_byte_creates_nothing() {
    let app = TestApp::start();
    let request = post("Rex");
    let head = request.find("\r\n\r\n").expect("the end of the head") + 4;
    for end in 0..request.len() {
        let mut connection = app.send(&request[..end]);
        connection.finish_sending();
        let expected: &[u16] = if end < head { &[] } else { &[400] };
        assert_eq!(statuses(&connection.responses_to_end()), expected, "{end}");
    }
    assert_no_pet(&app);
}
