use std::{future::pending, time::Duration};

use actix_http::body::BoxBody;
use actix_service::fn_service;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    task::{JoinHandle, spawn_local},
    time::{Instant, timeout},
};

use super::*;
use crate::{
    connection::Stage,
    limits::ConnectionLimits,
    pool::tests::{Worker, assert_elapsed},
};

const HEAD: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_LARGE: &str = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
const TIMEOUT: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

/// A worker whose service responds with the method and the body of each request; to `/silent`, never; to `/large`, with
/// a megabyte.
impl Worker {
    fn new(max_connections: usize) -> Self {
        Self::start(ConnectionLimits {
            max_connections,
            max_body_bytes: 1024,
            handshake_timeout: TIMEOUT,
            head_timeout: TIMEOUT,
            body_timeout: TIMEOUT,
            keep_alive: 3 * TIMEOUT,
            response_timeout: 60 * TIMEOUT,
            ..ConnectionLimits::default()
        })
    }

    /// Opens a connection whose buffers have this size, once there is a slot.
    async fn connect(&self, buffer: usize) -> (DuplexStream, JoinHandle<Result<(), End>>) {
        let (client, server) = duplex(buffer);
        let exchange = Exchange::new(server, self.pool.admit(None).await);
        let serving = spawn_local(async { exchange.serve(&fn_service(respond)).await });
        (client, serving)
    }
}

async fn respond(request: Request) -> Result<Response<BoxBody>, Response<BoxBody>> {
    let mut body = BytesMut::from(request.method().as_str());
    match request.path() {
        "/silent" => pending().await,
        "/large" => return Ok(Response::ok().set_body(BoxBody::new(vec![b'x'; 1 << 20]))),
        "/unread" => {}
        _ => {
            if let Some(ReceivedBody(Ok(received))) = request.extensions_mut().remove() {
                body.extend_from_slice(&received);
            }
        }
    }
    Ok(Response::ok().set_body(BoxBody::new(body.freeze())))
}

async fn send(client: &mut DuplexStream, bytes: impl AsRef<[u8]>) {
    client.write_all(bytes.as_ref()).await.unwrap();
}

async fn response(client: &mut DuplexStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(client.read_u8().await.expect("a response"));
    }
    let head = String::from_utf8(text).expect("text");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    client.read_exact(&mut body).await.expect("a body");
    head + str::from_utf8(&body).expect("text")
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_body_has_arrived_before_the_application_gets_its_request() {
    let (mut client, _serving) = Worker::new(1).connect(4096).await;
    for _ in 0..2 {
        send(
            &mut client,
            "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabc",
        )
        .await;
        let incomplete = timeout(TIMEOUT / 2, response(&mut client)).await;
        assert!(incomplete.is_err(), "{incomplete:?}");
        send(&mut client, "d").await;
        assert!(!response(&mut client).await.contains("connection: close"));
    }
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_connection_ends_after_the_response_if_its_client_wants_that() {
    let (mut client, serving) = Worker::new(1).connect(4096).await;
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    send(&mut client, request).await;
    assert!(response(&mut client).await.contains("connection: close"));
    assert_eq!(serving.await.unwrap(), Ok(()));
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_slow_body_is_an_error_for_the_application_at_the_timeout() {
    for (start, first_response) in [
        ("/ Content-Length: 99\r\n\r\na", "HTTP/1.1 200 OK"),
        ("/unread Content-Length: 99\r\n\r\na", "HTTP/1.1 200 OK"),
        (
            "/ Content-Length: 99\r\nExpect: 100-continue\r\n\r\na",
            "HTTP/1.1 100 Continue",
        ),
        (
            "/ Transfer-Encoding: chunked\r\n\r\n99\r\na",
            "HTTP/1.1 200 OK",
        ),
        (
            "/ Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nTrailer: ",
            "HTTP/1.1 200 OK",
        ),
    ] {
        let (mut client, _serving) = Worker::new(1).connect(4096).await;
        let begin = Instant::now();
        let start = start.replacen(' ', " HTTP/1.1\r\nHost: a\r\n", 1);
        let request = format!("POST {start}");
        send(&mut client, request).await;
        // Each second a byte arrives.
        let mut responses = String::new();
        while !responses.contains(" 200 OK") {
            match timeout(SECOND, response(&mut client)).await {
                Ok(response) => responses += &response,
                Err(_) => send(&mut client, "x").await,
            }
        }
        assert!(responses.starts_with(first_response), "{responses}");
        assert!(responses.contains("connection: close"), "{responses}");
        assert!(responses.ends_with("POST"), "{responses}");
        assert_elapsed(begin, TIMEOUT..TIMEOUT + SECOND);
    }
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_slow_head_is_a_408_after_its_timeout_and_an_idle_connection_ends_after_its_own() {
    // What the client sends at first and each second, the response, and the time until then.
    for (first, then, expected, after) in [
        ("", "", "HTTP/1.1 408", TIMEOUT),
        ("", "x", "HTTP/1.1 408", TIMEOUT),
        ("GET / HTTP/1.1\r\nX: ", "x", "HTTP/1.1 408", TIMEOUT),
        (HEAD, "x", "HTTP/1.1 408", TIMEOUT),
        (HEAD, "", "", 3 * TIMEOUT),
        (HEAD, "\n", "", 3 * TIMEOUT),
    ] {
        let (mut client, _serving) = Worker::new(1).connect(4096).await;
        let start = Instant::now();
        send(&mut client, first).await;
        if first == HEAD {
            response(&mut client).await;
        }
        let (mut reader, mut writer) = tokio::io::split(client);
        spawn_local(async move {
            while writer.write_all(then.as_bytes()).await.is_ok() {
                tokio::time::sleep(SECOND).await;
            }
        });
        let mut received = String::new();
        reader.read_to_string(&mut received).await.unwrap();
        let status = received.split(" R").next();
        assert_eq!(status, Some(expected), "{first:?} {then:?}");
        assert_elapsed(start, after..after + SECOND);
    }
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn after_the_final_response_input_is_dropped_until_the_client_closes_or_a_bound() {
    /// A connection whose last request was refused.
    async fn refused() -> (DuplexStream, JoinHandle<Result<(), End>>) {
        let (mut client, serving) = Worker::new(1).connect(4096).await;
        let request = b"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n";
        send(&mut client, request).await;
        response(&mut client).await;
        (client, serving)
    }

    let (mut client, serving) = refused().await;
    // The sending side is closed at once, and all input is read.
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    send(&mut client, "x".repeat(10_000)).await;
    drop(client);
    assert_eq!(serving.await.unwrap(), Ok(()));

    let (_client, serving) = refused().await;
    let start = Instant::now();
    assert_eq!(serving.await.unwrap(), Err(End::Timeout));
    assert_elapsed(start, 5 * SECOND..6 * SECOND);

    let (mut client, serving) = refused().await;
    let mut sent = 0;
    while client.write_all(&[b'x'; 4096]).await.is_ok() {
        sent += 4096;
    }
    assert!((1 << 20..(1 << 20) + 32 * 1024).contains(&sent), "{sent}");
    assert_eq!(serving.await.unwrap(), Ok(()));
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_bounded_number_of_bytes_of_later_requests_is_buffered() {
    let (mut client, _serving) = Worker::new(1).connect(1024).await;
    send(&mut client, "GET /silent HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut sent = 0;
    while timeout(Duration::from_millis(50), client.write_all(&[b'x'; 512]))
        .await
        .is_ok()
    {
        sent += 512;
    }
    assert!((8 * 1024..=12 * 1024).contains(&sent), "{sent}");
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_client_that_does_not_read_its_response_is_disconnected_after_the_response_timeout() {
    let (mut client, serving) = Worker::new(1).connect(1024).await;
    let start = Instant::now();
    send(&mut client, GET_LARGE).await;
    for _ in 0..5 {
        tokio::time::sleep(50 * TIMEOUT).await;
        client.read_exact(&mut [0; 1024]).await.expect("it goes on");
    }
    assert_eq!(serving.await.unwrap(), Err(End::Timeout));
    let elapsed = start.elapsed();
    assert!(elapsed >= (5 * 50 + 60) * TIMEOUT, "{elapsed:?}");
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_client_that_reads_eight_bytes_a_second_makes_room_after_two_seconds() {
    let worker = Worker::new(1);
    let (mut reader, serving) = worker.connect(1024).await;
    tokio::time::sleep(TIMEOUT / 2).await;
    send(&mut reader, GET_LARGE).await;
    reader.read_exact(&mut [0; 1024]).await.unwrap();
    let start = Instant::now();
    let reading = spawn_local(async move {
        while let Ok(1..) = reader.read(&mut [0; 8]).await {
            tokio::time::sleep(SECOND).await;
        }
    });

    let (_client, _) = worker.connect(1024).await;

    assert_elapsed(start, 2 * SECOND..SECOND * 27 / 10);
    assert_eq!(serving.await.unwrap(), Err(End::MaxConnections));
    reading.await.unwrap();
}

#[tokio::test(flavor = "local", start_paused = true)]
async fn a_stop_closes_idle_connections_after_the_grace_and_answers_requests() {
    let worker = Worker::new(4);
    let (mut idle, _) = worker.connect(1024).await;
    let (mut half, _) = worker.connect(1024).await;
    let (mut unused, _) = worker.connect(1024).await;
    let (mut receiving, _) = worker.connect(1024).await;
    send(&mut half, "GET / HT").await;
    send(&mut idle, HEAD).await;
    response(&mut idle).await;
    send(
        &mut receiving,
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabc",
    )
    .await;
    tokio::time::sleep(SECOND).await;

    let start = Instant::now();
    worker.stage.send_replace(Stage::Stopping {
        since: start,
        idle_grace: Duration::from_secs(3),
    });
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
    // It was idle for a second before.
    assert_elapsed(start, 2 * SECOND..SECOND * 21 / 10);
    for client in [&mut half, &mut unused] {
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    send(&mut receiving, "d").await;
    assert!(response(&mut receiving).await.ends_with("POSTabcd"));
    drop(receiving);
    worker.pool.closed().await;
}
