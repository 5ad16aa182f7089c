use std::pin::pin;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

const HEAD: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Whether nothing can be read now, not even the end.
fn is_held_back(stream: &mut Turns<DuplexStream>) -> bool {
    let mut byte = [0];
    pin!(stream.read(&mut byte)).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

fn state_of(turn: &Turn) -> State {
    turn.0.state.get()
}

#[test]
fn an_empty_line_ends_a_head_with_or_without_carriage_returns() {
    for end in ["\r\n\r\n", "\n\n", "\r\n\n", "\n\r\n"] {
        let head = format!("GET / HTTP/1.1{end}");
        assert_eq!(find_empty_line(Line::None, format!("{head}rest").as_bytes()), Ok(head.len()), "{end:?}");
    }
    assert_eq!(find_empty_line(Line::None, b"\r\n\n\r\nGET"), Err(Line::Within), "empty lines before a head");
    assert_eq!(find_empty_line(Line::None, b"a\r\n \r\nb\r\r\n"), Err(Line::Ended), "lines that are not empty");
}

proptest! {
    #[test]
    fn a_head_ends_at_the_same_place_however_it_is_cut(text in "[\r\na]{0,12}", cut in 0..12_usize) {
        let bytes = text.as_bytes();
        let (left, right) = bytes.split_at(cut.min(bytes.len()));
        let in_pieces = match find_empty_line(Line::None, left) {
            Err(line) => find_empty_line(line, right).map(|end| end + left.len()),
            end => end,
        };
        prop_assert_eq!(in_pieces, find_empty_line(Line::None, bytes));
    }
}

#[test]
fn a_body_is_handed_over_to_its_last_byte_and_no_further() {
    let turn = Turn::default();
    turn.set(State::Body { left: 5, answered: false, last: false });

    assert_eq!(turn.hand_over(b"12"), 2);
    assert_eq!(turn.hand_over(b"345GET"), 3);
    assert_eq!(state_of(&turn), State::Waiting { last: false });
    assert_eq!(turn.hand_over(b"GET"), 0);

    turn.end();
    assert_eq!(turn.hand_over(HEAD.as_bytes()), HEAD.len());
}

#[test]
fn what_is_left_of_a_body_that_was_answered_early_is_not_taken_for_a_head() {
    let turn = Turn::default();
    turn.set(State::Body { left: 30, answered: false, last: false });

    turn.end();

    assert_eq!(turn.hand_over(&[b'\n'; 20]), 20);
    assert_eq!(turn.hand_over(&[b'\n'; 20]), 10);
    assert_eq!(state_of(&turn), State::default());
}

#[test]
fn nothing_follows_the_last_request() {
    for state in [State::Waiting { last: true }, State::Body { left: 3, answered: false, last: true }] {
        let turn = Turn::default();
        turn.set(state);
        turn.end();
        turn.hand_over(b"123");
        assert_eq!(state_of(&turn), State::Closed);
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
        turn.end();
    }
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "the end");
}

#[tokio::test]
async fn no_more_than_a_bounded_part_of_later_requests_is_held() {
    let (mut client, server) = duplex(1024 * 1024);
    let mut stream = Turns::new(server);
    client.write_all(HEAD.repeat(10_000).as_bytes()).await.unwrap();

    let mut head = vec![0; HEAD.len()];
    stream.read_exact(&mut head).await.unwrap();
    assert!(is_held_back(&mut stream));
    assert!(stream.held.len() < MAX_HELD + 1024, "{}", stream.held.len());
}
