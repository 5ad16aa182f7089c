use std::pin::pin;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    time::Instant,
};

use super::*;

const HEAD: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn turn_in(part: Part) -> Turn {
    let turn = Turn::default();
    turn.set(State::Open { part, answered: false });
    turn
}

/// Whether nothing can be read now, not even the end.
fn is_held_back(stream: &mut Turns<DuplexStream>) -> bool {
    let mut byte = [0];
    pin!(stream.read(&mut byte)).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[test]
fn a_body_is_handed_over_to_its_last_byte_and_no_further() {
    let turn = turn_in(Part::Length(5));

    assert_eq!(turn.hand_over(b"12"), 2);
    assert_eq!(turn.hand_over(b"345GET"), 3);
    assert_eq!(turn.hand_over(b"GET"), 0);

    turn.end(false);
    assert_eq!(turn.hand_over(HEAD.as_bytes()), HEAD.len());
}

#[test]
fn the_rest_of_a_chunked_body_that_was_answered_early_is_not_taken_for_a_head() {
    let turn = turn_in(Part::CHUNKS);
    assert_eq!(turn.hand_over(b"4\r\nan"), 5);

    turn.end(false);

    assert_eq!(turn.hand_over(b"im\r\n0\r\n\r\nGET"), 9);
    assert_eq!(turn.hand_over(HEAD.as_bytes()), HEAD.len());
}

#[test]
fn nothing_is_handed_over_behind_the_rest_of_any_other_body_that_was_answered_early() {
    let turn = turn_in(Part::Length(5));

    turn.end(false);

    assert_eq!(turn.hand_over(b"12345GET"), 0);
}

#[test]
fn nothing_follows_the_last_answer() {
    let complete = turn_in(Part::Length(1));
    assert_eq!(complete.hand_over(b"1"), 1);
    for turn in [complete, turn_in(Part::Length(5)), turn_in(Part::CHUNKS), turn_in(Part::HEAD)] {
        turn.end(true);
        assert_eq!(turn.hand_over(HEAD.as_bytes()), 0);
    }
}

#[tokio::test]
async fn a_request_waits_until_the_one_before_it_is_answered() {
    let (mut client, server) = duplex(1024);
    let mut stream = Turns::new(server);
    let turn = stream.turn();
    client.write_all(HEAD.repeat(3).as_bytes()).await.unwrap();
    drop(client);

    for later in (0..3).rev() {
        let mut head = vec![0; HEAD.len()];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head, HEAD.as_bytes());
        assert_eq!(is_held_back(&mut stream), later > 0);
        turn.end(false);
    }
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "the end");
}

#[tokio::test]
async fn whoever_reads_is_woken_when_it_is_the_next_ones_turn() {
    let (mut client, server) = duplex(1024);
    let mut stream = Turns::new(server);
    let turn = stream.turn();
    client.write_all(HEAD.repeat(2).as_bytes()).await.unwrap();
    stream.read_exact(&mut [0; HEAD.len()]).await.unwrap();

    let ((), next) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            turn.end(false);
        },
        stream.read_u8()
    );
    assert_eq!(next.unwrap(), b'G');
}

#[tokio::test]
async fn no_more_than_a_bounded_part_of_later_requests_is_held() {
    let (mut client, server) = duplex(1024 * 1024);
    let mut stream = Turns::new(server);
    client.write_all(HEAD.repeat(10_000).as_bytes()).await.unwrap();

    stream.read_exact(&mut [0; HEAD.len()]).await.unwrap();
    assert!(is_held_back(&mut stream));

    assert!(stream.held.len() < ENOUGH_HELD + 1024, "{}", stream.held.len());
}

#[tokio::test(start_paused = true)]
async fn behind_the_last_answer_all_is_dropped_until_the_client_ends_or_time_is_up() {
    let (mut client, server) = duplex(16);
    let mut stream = Turns::new(server);
    stream.turn().end(true);
    let leaving = tokio::spawn(async move { client.write_all(&[b'x'; 1000]).await });
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    leaving.await.unwrap().expect("all of it was read");

    let (_staying, server) = duplex(16);
    let mut stream = Turns::new(server);
    stream.turn().end(true);
    let start = Instant::now();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(start.elapsed(), LINGER);
}
