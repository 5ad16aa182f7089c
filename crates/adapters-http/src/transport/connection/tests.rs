use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Wake,
};

use actix_http::header::{HeaderName, HeaderValue};

use super::*;

const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const MAX_BODY_BYTES: u64 = 100;

fn receiving(section: Section) -> Connection {
    let connection = Connection::new(None, MAX_BODY_BYTES, Rc::default());
    connection.phase.set(Phase::Receiving(section));
    connection
}

/// Counts the wakes of a task.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes all filler and returns its length.
fn filler(connection: &Connection) -> usize {
    connection.fill_body();
    std::iter::repeat_with(|| connection.take_filler(30)).take_while(|&count| count > 0).sum()
}

#[test]
fn a_peer_with_ipv4_in_ipv6_form_has_its_ipv4_address() {
    for (peer, expected) in
        [("[::ffff:192.0.2.9]:80", "192.0.2.9"), ("192.0.2.9:80", "192.0.2.9"), ("[2001:db8::9]:80", "2001:db8::9")]
    {
        let connection = Connection::new(Some(peer.parse().unwrap()), MAX_BODY_BYTES, Rc::default());
        assert_eq!(connection.peer, Some(expected.parse().unwrap()), "{peer}");
    }
}

#[test]
fn a_body_is_taken_up_to_its_last_byte() {
    let connection = receiving(Section::Body(5));

    assert_eq!(connection.take(b"12"), 2);
    assert_eq!(connection.take(b"345GET"), 3);
    assert_eq!(connection.take(b"GET"), 0);

    assert!(!connection.start_response(false));
    assert_eq!(connection.take(HEAD), HEAD.len());
}

#[test]
fn after_an_early_response_the_rest_of_a_small_body_is_filled_and_not_a_head() {
    let connection = receiving(Section::Body(MAX_BODY_BYTES));
    assert_eq!(connection.take(&[b'x'; 40]), 40);

    connection.fill_body();
    assert_eq!((connection.needed_filler(), filler(&connection)), (60, 60));
    assert_eq!(connection.needed_filler(), 0);
    assert!(!connection.start_response(false));

    assert_eq!(connection.take(&[&[b'x'; 60], HEAD].concat()), 60);
    assert_eq!(connection.take(HEAD), HEAD.len());
}

#[test]
fn after_an_early_response_the_rest_of_a_chunked_body_is_not_a_head() {
    let connection = receiving(Section::CHUNKED_BODY);
    assert_eq!(connection.take(b"4\r\nan"), 5);

    assert!(!connection.start_response(false));

    assert_eq!(connection.take(b"im\r\n0\r\n\r\nGET"), 9);
    assert_eq!(connection.take(HEAD), HEAD.len());
}

#[test]
fn an_early_response_to_a_large_body_is_the_final_one() {
    let connection = receiving(Section::Body(MAX_BODY_BYTES + 1));

    assert_eq!(filler(&connection), 0);
    assert!(connection.start_response(false));

    assert_eq!(connection.phase(), Phase::Closing { unread: true });
    assert_eq!(connection.take(b"12345GET"), 0);
}

#[test]
fn a_chunked_body_of_the_maximum_in_chunks_of_one_byte_is_discarded() {
    let connection = receiving(Section::CHUNKED_BODY);
    assert!(!connection.start_response(false));

    connection.take("1\r\nx\r\n".repeat(100).as_bytes());
    assert_eq!(connection.take(b"0\r\n\r\nGET"), 5);
    assert_eq!(connection.phase(), FIRST_PHASE);
}

#[test]
fn a_chunked_body_that_turns_out_large_ends_the_connection() {
    let connection = receiving(Section::CHUNKED_BODY);
    assert!(!connection.start_response(false));

    for _ in 0..20 {
        connection.take(b"a\r\n0123456789\r\n");
    }
    assert_eq!(connection.phase(), Phase::Closing { unread: true });

    for large in [&b"65\r\n"[..], &[b'0'; 601]] {
        let connection = receiving(Section::CHUNKED_BODY);
        connection.take(large);
        assert!(connection.start_response(false), "it is large before the response");
    }
}

#[test]
fn after_the_final_response_nothing_is_taken() {
    let complete = receiving(Section::Body(1));
    assert_eq!(complete.take(b"1"), 1);
    let filled = receiving(Section::Body(5));
    assert_eq!(filler(&filled), 5);
    for connection in [complete, filled, receiving(Section::Body(5)), receiving(Section::CHUNKED_BODY)] {
        assert!(connection.start_response(true));
        assert_eq!(connection.take(HEAD), 0);
    }
}

#[test]
fn a_head_that_is_too_large_is_refused_by_its_target_or_its_fields() {
    for (start, limit) in
        [("", HeadLimit::Target), ("GET /", HeadLimit::Target), ("GET / HTTP/1.1\r\nX: ", HeadLimit::Fields)]
    {
        let connection = receiving(Section::HEAD);
        let too_large = start.to_owned() + &"x".repeat(32 * 1024 + 1 - start.len());
        connection.take(&too_large.as_bytes()[..32 * 1024]);
        assert!(matches!(connection.phase(), Phase::Receiving(_)), "{start}");

        assert_eq!(connection.take(b"x HTTP/1.1\r\n\r\n"), 0, "{start}");
        assert_eq!(connection.phase(), Phase::Refusing(limit), "{start}");
    }
}

#[test]
fn a_connection_is_idle_until_a_byte_arrives_and_after_the_response_is_in_the_socket() {
    let connection = receiving(Section::HEAD);
    assert!(connection.is_idle());

    connection.take(b"G");
    assert!(!connection.is_idle() && connection.has_no_request());

    connection.take(&HEAD[1..]);
    assert!(connection.has_no_request(), "actix may refuse the head");
    assert!(connection.can_be_closed());

    connection.start_request(&Request::new());
    assert!(!connection.has_no_request() && !connection.can_be_closed());

    connection.start_response(false);
    connection.flushed(Instant::now());
    assert!(!connection.is_idle(), "actix does not have the whole body");
    connection.response.end_body();
    assert!(!connection.is_idle(), "the socket does not have the whole body");
    connection.flushed(Instant::now());
    assert!(connection.is_idle() && connection.has_no_request());
}

#[test]
fn the_body_of_a_request_is_received_after_its_head() {
    for (name, value, phase) in [
        ("content-length", "0", Phase::Responding),
        ("content-length", "5", Phase::Receiving(Section::Body(5))),
        ("transfer-encoding", "chunked", Phase::Receiving(Section::CHUNKED_BODY)),
    ] {
        let connection = receiving(Section::HEAD);
        let mut request = Request::new();
        request.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        connection.start_request(&request);
        assert_eq!(connection.phase(), phase, "{name}: {value}");
    }
}

#[test]
fn a_connection_that_is_closed_wakes_its_last_task_and_a_request_keeps_it_open() {
    let (first, last) = (Arc::<Wakes>::default(), Arc::<Wakes>::default());
    let connection = receiving(Section::HEAD);
    for wakes in [&first, &last] {
        connection.remember_task(&Waker::from(Arc::clone(wakes)));
    }

    connection.close(Some(ConnectionLimit::MaxConnections));
    assert!(connection.is_closed() && connection.limit() == Some(ConnectionLimit::MaxConnections));
    assert_eq!((first.0.load(Ordering::Relaxed), last.0.load(Ordering::Relaxed)), (0, 1));

    connection.keep_open();
    assert!(!connection.is_closed() && connection.limit().is_none());
}

#[test]
fn a_connection_with_its_response_can_be_closed_while_input_is_dropped() {
    for (section, is_final) in [(Section::CHUNKED_BODY, false), (Section::CHUNKED_BODY, true)] {
        let connection = receiving(section);
        connection.has_request.set(true);
        connection.start_response(is_final);
        assert!(!connection.can_be_closed(), "the response is being sent");

        connection.response.end_body();
        connection.flushed(Instant::now());
        assert!(connection.can_be_closed());
    }
}
