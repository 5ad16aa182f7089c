//! Uploads that are answered before they end, and uploads that never end.

use std::{
    io::Write,
    net::TcpStream,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{
    raw_connection::{DEADLINE, RawConnection},
    raw_requests::{animal, assert_no_animal, begin_post, get, post, post_head, smuggled},
    test_app::TestApp,
};

const TEN_MIB: usize = 10 * 1024 * 1024;

/// Why an upload is answered before it ends.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    NoKey,
    TooLarge,
    NotJson,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    Length,
    Chunks,
}

const ALL: [(Refusal, Framing); 6] = [
    (Refusal::NoKey, Framing::Length),
    (Refusal::NoKey, Framing::Chunks),
    (Refusal::TooLarge, Framing::Length),
    (Refusal::TooLarge, Framing::Chunks),
    (Refusal::NotJson, Framing::Length),
    (Refusal::NotJson, Framing::Chunks),
];

/// A body of 10 MiB that is nothing but requests to add an animal, with its head.
fn upload(refusal: Refusal, framing: Framing) -> Vec<u8> {
    let body = smuggled().repeat(TEN_MIB / smuggled().len());
    let mut head = match framing {
        Framing::Length => post_head(&format!("Content-Length: {}\r\n", body.len())),
        Framing::Chunks => post_head("Transfer-Encoding: chunked\r\n"),
    };
    match refusal {
        Refusal::NoKey => head = head.replacen("Authorization", "X-Authorization", 1),
        Refusal::TooLarge => {}
        Refusal::NotJson => head = head.replacen("application/json", "text/plain", 1),
    }
    let body = match framing {
        Framing::Length => body.into_bytes(),
        Framing::Chunks => {
            let mut chunks = Vec::new();
            for chunk in body.as_bytes().chunks(50_000) {
                chunks.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                chunks.extend_from_slice(chunk);
                chunks.extend_from_slice(b"\r\n");
            }
            chunks.extend_from_slice(b"0\r\n\r\n");
            chunks
        }
    };
    [head.into_bytes(), body].concat()
}

fn send_in_the_background(mut sender: TcpStream, bytes: Vec<u8>) -> JoinHandle<std::io::Result<()>> {
    thread::spawn(move || sender.write_all(&bytes))
}

/// The refusal arrives, and whatever follows on the connection is right.
#[track_caller]
fn assert_answer_and_what_follows(
    app: &TestApp,
    connection: &mut RawConnection,
    refusal: Refusal,
    wait: impl FnOnce(),
) {
    let response = connection.response();
    match refusal {
        Refusal::NoKey => response.assert_error(401, "missing_api_key"),
        Refusal::TooLarge => response.assert_error(413, "payload_too_large"),
        Refusal::NotJson => response.assert_error(415, "unsupported_media_type"),
    }
    wait();
    if response.closes() {
        connection.finish_sending();
        connection.assert_closed();
    } else {
        connection.send(get("/v1/pets"));
        assert_eq!(connection.response().json(), serde_json::json!([]));
    }
    assert_no_animal(app);
}

#[test]
fn a_client_that_reads_while_it_uploads_sees_why_it_is_refused() {
    let app = TestApp::start();
    for (refusal, framing) in ALL {
        let mut connection = RawConnection::open(app.address);
        let sending = send_in_the_background(connection.sender(), upload(refusal, framing));
        assert_answer_and_what_follows(&app, &mut connection, refusal, || {
            sending.join().expect("no panic").unwrap_or_else(|error| panic!("{refusal:?}, {framing:?}: {error}"));
        });
    }
}

#[test]
fn a_client_that_reads_after_its_upload_sees_why_it_was_refused() {
    let app = TestApp::start();
    for (refusal, framing) in ALL {
        let mut connection = RawConnection::open(app.address);
        connection.send(upload(refusal, framing));
        assert_answer_and_what_follows(&app, &mut connection, refusal, || {});
    }
}

#[test]
fn a_client_that_stops_its_upload_when_it_is_refused_is_not_waited_for() {
    let app = TestApp::start();
    for (refusal, framing) in ALL {
        let mut connection = RawConnection::open(app.address);
        let bytes = upload(refusal, framing);
        connection.send(&bytes[..100_000]);
        let status = connection.response().status;
        assert!(matches!(status, 401 | 413 | 415), "{refusal:?}, {framing:?}: {status}");
        connection.finish_sending();
        connection.assert_closed();
    }
    assert_no_animal(&app);
}

#[test]
fn an_upload_that_was_refused_does_not_hold_its_connection_for_ever() {
    let app = TestApp::start_with(&[
        ("http.head_timeout", "1s"),
        ("http.body_timeout", "100ms"),
        ("http.keep_alive", "100ms"),
        ("http.answer_timeout", "1500ms"),
    ]);
    let connections = ALL.map(|(refusal, framing)| {
        let mut connection = RawConnection::open(app.address);
        connection.send(&upload(refusal, framing)[..100_000]);
        assert!(matches!(connection.response().status, 401 | 413 | 415));
        connection
    });
    // They neither go on nor leave.
    for mut connection in connections {
        connection.assert_closed();
    }
}

#[test]
fn a_refused_client_that_has_sent_more_and_leaves_is_not_waited_for() {
    let app = TestApp::start();
    let mut connection = RawConnection::open(app.address);
    let refused = post("Rex").replacen("Authorization", "X-Authorization", 1);

    let start = Instant::now();
    connection.send(refused + &get("/v1/pets").repeat(1000));
    connection.finish_sending();
    let responses = connection.responses_to_end();

    assert_eq!(responses.len(), 1, "{responses:?}");
    responses[0].assert_error(401, "missing_api_key");
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_body_leaves_no_animal_and_no_request_behind() {
    // With one request at a time, the others see whether it is still there.
    let app = TestApp::start_with(&[("http.max_in_flight", "1")]);
    let body = animal("Rex");
    for (framing, part) in [
        (format!("Content-Length: {}\r\n", body.len() + 1), body.clone()),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("{:x}\r\n{body}\r\n", body.len())),
    ] {
        let mut connection = begin_post(&app, &framing);
        connection.send(part);
        wait_for_status(&app, 503);
        drop(connection);
        wait_for_status(&app, 200);
        assert_no_animal(&app);
    }
    assert_eq!(app.post(animal("Ada")).status, 201);
}

#[track_caller]
fn wait_for_status(app: &TestApp, status: u16) {
    let start = Instant::now();
    while app.get("/v1/pets").status != status {
        assert!(start.elapsed() < DEADLINE, "never {status}");
    }
}

#[test]
fn a_connection_that_is_reset_in_the_middle_of_anything_does_no_harm() {
    let app = TestApp::start();
    let request = post("Rex");
    // All but the last byte: what is complete may rightly add its animal.
    for end in 0..request.len() {
        let mut connection = RawConnection::open(app.address);
        connection.send(&request[..end]);
        drop(connection);
    }
    assert_no_animal(&app);
}
