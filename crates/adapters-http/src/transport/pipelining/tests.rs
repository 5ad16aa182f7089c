use std::pin::pin;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    time::Instant,
};

use super::*;

const HEAD: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn receiving(section: Section) -> Progress {
    let progress = Progress::default();
    progress.set(Phase::Receiving { section, responded: false });
    progress
}

/// Whether nothing can be read now, not even the end of the stream.
fn is_pending(stream: &mut RequestStream<DuplexStream>) -> bool {
    let mut byte = [0];
    pin!(stream.read(&mut byte)).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[test]
fn a_body_is_delivered_up_to_its_last_byte() {
    let progress = receiving(Section::Body(5));

    assert_eq!(progress.deliver(b"12"), 2);
    assert_eq!(progress.deliver(b"345GET"), 3);
    assert_eq!(progress.deliver(b"GET"), 0);

    progress.finish(false);
    assert_eq!(progress.deliver(HEAD.as_bytes()), HEAD.len());
}

#[test]
fn after_an_early_response_the_rest_of_a_chunked_body_is_not_a_head() {
    let progress = receiving(Section::CHUNKED_BODY);
    assert_eq!(progress.deliver(b"4\r\nan"), 5);

    progress.finish(false);

    assert_eq!(progress.deliver(b"im\r\n0\r\n\r\nGET"), 9);
    assert_eq!(progress.deliver(HEAD.as_bytes()), HEAD.len());
}

#[test]
fn after_an_early_response_to_any_other_body_nothing_is_delivered() {
    let progress = receiving(Section::Body(5));

    progress.finish(false);

    assert_eq!(progress.deliver(b"12345GET"), 0);
}

#[test]
fn after_the_final_response_nothing_is_delivered() {
    let complete = receiving(Section::Body(1));
    assert_eq!(complete.deliver(b"1"), 1);
    for progress in [complete, receiving(Section::Body(5)), receiving(Section::CHUNKED_BODY), receiving(Section::HEAD)]
    {
        progress.finish(true);
        assert_eq!(progress.deliver(HEAD.as_bytes()), 0);
    }
}

#[tokio::test]
async fn a_request_waits_for_the_response_to_the_request_before_it() {
    let (mut client, server) = duplex(1024);
    let mut stream = RequestStream::new(server);
    let progress = stream.progress();
    client.write_all(HEAD.repeat(3).as_bytes()).await.unwrap();
    drop(client);

    for later in (0..3).rev() {
        let mut head = vec![0; HEAD.len()];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head, HEAD.as_bytes());
        assert_eq!(is_pending(&mut stream), later > 0);
        progress.finish(false);
    }
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "the end of the stream");
}

#[tokio::test]
async fn the_reader_is_woken_by_the_response() {
    let (mut client, server) = duplex(1024);
    let mut stream = RequestStream::new(server);
    let progress = stream.progress();
    client.write_all(HEAD.repeat(2).as_bytes()).await.unwrap();
    stream.read_exact(&mut [0; HEAD.len()]).await.unwrap();

    let ((), next) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            progress.finish(false);
        },
        stream.read_u8()
    );
    assert_eq!(next.unwrap(), b'G');
}

#[tokio::test]
async fn a_bounded_number_of_bytes_of_later_requests_is_buffered() {
    let (mut client, server) = duplex(1024 * 1024);
    let mut stream = RequestStream::new(server);
    client.write_all(HEAD.repeat(10_000).as_bytes()).await.unwrap();

    stream.read_exact(&mut [0; HEAD.len()]).await.unwrap();
    assert!(is_pending(&mut stream));

    assert!(stream.buffered.len() < MAX_BUFFERED + 1024, "{}", stream.buffered.len());
}

#[tokio::test(start_paused = true)]
async fn after_the_final_response_input_is_drained_until_the_client_closes_or_the_timeout() {
    let (mut client, server) = duplex(16);
    let mut stream = RequestStream::new(server);
    stream.progress().finish(true);
    let closing = tokio::spawn(async move { client.write_all(&[b'x'; 1000]).await });
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    closing.await.unwrap().expect("all of it was read");

    let (_open, server) = duplex(16);
    let mut stream = RequestStream::new(server);
    stream.progress().finish(true);
    let start = Instant::now();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(start.elapsed(), DRAIN_TIMEOUT);
}
