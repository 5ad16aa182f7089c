use std::{pin::pin, sync::Arc, task::Waker};

use actix_http::{
    Request,
    header::{CONTENT_LENGTH, HeaderValue},
};
use futures_util::FutureExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufWriter, DuplexStream, duplex},
    time::Instant,
};
use tracing::Level;

use super::*;
use crate::{
    LoggedRequests, RequestLogFilter, limits::Limits, middleware::request_log::RequestLog,
    transport::connections::Connections,
};

const HEAD: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const BODY_TIMEOUT: Duration = Duration::from_secs(3);

async fn stream<T>(server: T) -> RequestStream<T> {
    let log =
        RequestLog { level: Level::INFO, logged: RequestLogFilter::new(LoggedRequests::All), metrics: Arc::default() };
    let slot = Connections::new(&Limits::MINIMAL, 1, Rc::new(log), Arc::default()).admit(None).await;
    RequestStream::new(WriteTimeoutStream::new(server, Duration::from_mins(2)), slot, BODY_TIMEOUT)
}

/// A response without a body, which the socket takes at once.
fn send_response(connection: &Connection) {
    connection.start_response(false);
    connection.response.end_body();
    connection.flushed(Instant::now());
}

/// Whether nothing can be read now, not even the end of the stream.
fn is_pending(stream: &mut RequestStream<DuplexStream>) -> bool {
    let mut byte = [0];
    pin!(stream.read(&mut byte)).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test]
async fn a_request_waits_for_the_response_to_the_request_before_it() {
    let (mut client, server) = duplex(1024);
    let mut stream = stream(server).await;
    let connection = Rc::clone(stream.connection());
    client.write_all(HEAD.repeat(3).as_bytes()).await.unwrap();
    drop(client);

    for later in (0..3).rev() {
        let mut head = vec![0; HEAD.len()];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head, HEAD.as_bytes());
        assert_eq!(is_pending(&mut stream), later > 0);
        send_response(&connection);
    }
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "the end of the stream");
}

#[tokio::test]
async fn after_the_filler_of_a_body_the_input_does_not_end() {
    let (_client, server) = duplex(16);
    let mut stream = stream(server).await;
    let mut request = Request::new();
    request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("3"));
    stream.connection().start_request(&request);
    stream.connection().fill_body();

    let mut filler = [1; 3];
    stream.read_exact(&mut filler).await.unwrap();
    assert_eq!(filler, [0; 3]);
    assert!(is_pending(&mut stream));
}

#[tokio::test]
async fn a_bounded_number_of_bytes_of_later_requests_is_buffered() {
    let (mut client, server) = duplex(1024 * 1024);
    let mut stream = stream(server).await;
    client.write_all(HEAD.repeat(10_000).as_bytes()).await.unwrap();

    stream.read_exact(&mut [0; HEAD.len()]).await.unwrap();
    assert!(is_pending(&mut stream));

    assert!(stream.buffered.len() < MAX_BUFFERED + 1024, "{}", stream.buffered.len());
}

#[tokio::test(start_paused = true)]
async fn after_the_final_response_input_is_drained_until_the_client_closes_or_a_bound() {
    let (mut client, server) = duplex(16);
    let mut stream = final_response(server).await;
    let sending = tokio::spawn(async move {
        client.write_all(&[b'x'; 1000]).await.expect("all of it is read");
        client.read(&mut [0]).await.expect("the end of the responses")
    });
    stream.shutdown().await.unwrap();
    assert_eq!(sending.await.unwrap(), 0);

    let (_open, server) = duplex(16);
    let mut stream = final_response(server).await;
    let start = Instant::now();
    stream.shutdown().await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(5));

    let (mut client, server) = duplex(4096);
    let mut stream = final_response(server).await;
    let endless = tokio::spawn(async move { while client.write_all(&[b'x'; 4096]).await.is_ok() {} });
    let start = Instant::now();
    stream.shutdown().await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
    drop(stream);
    endless.await.unwrap();
}

/// A stream with its final response, while the body of its request is still arriving.
async fn final_response(server: DuplexStream) -> RequestStream<DuplexStream> {
    let stream = stream(server).await;
    stream.connection().start_response(true);
    stream
}

#[tokio::test(start_paused = true)]
async fn a_complete_request_with_its_final_response_is_closed_at_once() {
    let (mut client, server) = duplex(1024);
    let mut stream = stream(server).await;
    client.write_all(HEAD.as_bytes()).await.unwrap();
    stream.read_exact(&mut [0; HEAD.len()]).await.unwrap();
    stream.connection().start_response(true);

    let start = Instant::now();
    stream.shutdown().await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn only_a_connection_that_makes_room_ends_before_its_closing_message_is_sent() {
    for makes_room in [false, true] {
        let (_client, server) = duplex(1);
        let mut stream = stream(BufWriter::new(server)).await;
        stream.stream.write_all(b"a closing message").await.unwrap();
        if makes_room {
            stream.connection().close(None);
        }
        assert_eq!(stream.shutdown().now_or_never().is_some(), makes_room);
    }
}

#[tokio::test]
async fn a_closed_connection_ends_unless_a_request_has_arrived_meanwhile() {
    const END: &str = "the end of the input";
    let aborted = Err(io::ErrorKind::ConnectionAborted);
    for (before, has_request, meanwhile, expected) in [
        ("", false, "", Ok(0)),
        ("", false, END, Ok(0)),
        ("", false, "G", Ok(1)),
        ("G", false, "ET", Ok(0)),
        (HEAD, true, "", aborted),
    ] {
        let (mut client, server) = duplex(1024);
        let mut stream = stream(server).await;
        let connection = Rc::clone(stream.connection());
        client.write_all(before.as_bytes()).await.unwrap();
        stream.read_exact(&mut vec![0; before.len()]).await.unwrap();
        if has_request {
            connection.start_request(&Request::new());
        }
        if meanwhile == END {
            client.shutdown().await.unwrap();
        } else {
            client.write_all(meanwhile.as_bytes()).await.unwrap();
        }

        connection.close(None);
        let read = stream.read(&mut [0; 8]).now_or_never().expect("no wait").map_err(|error| error.kind());
        assert_eq!((read, connection.is_closed()), (expected, expected != Ok(1)), "{before:?} {meanwhile:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_too_large_is_refused_without_more_of_it() {
    let (mut client, server) = duplex(64 * 1024);
    let mut stream = stream(server).await;
    client.write_all(&vec![b'x'; 40_000]).await.unwrap();
    let mut delivered = Vec::new();
    stream.read_to_end(&mut delivered).await.unwrap();

    drop(stream);
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 414 "), "{response}");
}
