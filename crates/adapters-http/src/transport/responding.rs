//! Calls the service for each request of a connection, and prepares the connection for what follows the response.

use std::rc::Rc;

use actix_http::{
    ConnectionType, HttpMessage, Request, Response, StatusCode, Version,
    body::MessageBody,
    header::{HOST, UPGRADE},
};
use actix_service::Service;
use tokio::task::yield_now;

use super::{connection::Connection, connections::Connections, phase::MAX_TARGET_BYTES, sliced_body::SlicedBody};

/// actix may poll a response several times before it reads.
const MAX_UNUSED_POLLS: u32 = 8;

/// Calls the service. Its response lets the stream deliver the next request.
pub(crate) fn respond<S, B>(
    request: Request,
    service: &S,
    connections: &Rc<Connections>,
) -> impl Future<Output = Result<Response<SlicedBody>, S::Error>> + use<S, B>
where
    S: Service<Request>,
    S::Response: Into<Response<B>>,
    B: MessageBody,
{
    let connection = request.conn_data::<Rc<Connection>>().cloned().expect("every connection has one");
    let connections = Rc::clone(connections);
    // In the protocol of the upgrade, the request may end at another byte.
    let is_upgrade = request.headers().contains_key(UPGRADE);
    let mut is_final = is_upgrade || request.head().connection_type() == ConnectionType::Close;
    connection.start_request(&request);
    let call = match refusal(&request) {
        Some(status) => Err(status),
        None => Ok(service.call(request)),
    };
    async move {
        let response: Result<Response<B>, _> = match call {
            Ok(call) => call.await.map(Into::into),
            Err(status) => {
                connections.log.record_refusal(connection.peer, status.as_u16());
                connection.start_response(true);
                let mut response = Response::with_body(status, SlicedBody::empty(connection));
                response.head_mut().set_connection_type(ConnectionType::Close);
                return Ok(response);
            }
        };
        let response = response.inspect_err(|_| {
            connection.start_response(is_final);
            connection.response.end_body();
        })?;
        let mut response = response.map_body(|_, body| SlicedBody::new(body, Rc::clone(&connection)));
        connections.limit_held_bytes();
        complete_body(&connection).await;
        let head = response.head_mut();
        if is_upgrade || connections.is_draining() {
            head.set_connection_type(ConnectionType::Close);
        }
        // In HTTP/1.0, only the request decides whether the connection closes. If actix adds `Connection: close` later,
        // it reads no further request.
        is_final |= head.version >= Version::HTTP_11 && head.connection_type() == ConnectionType::Close;
        if connection.start_response(is_final) && !is_final {
            response.head_mut().set_connection_type(ConnectionType::Close);
        }
        Ok(response)
    }
}

/// If the body is not complete, and small, gives actix filler in its place. Otherwise it would close the connection.
async fn complete_body(connection: &Connection) {
    connection.fill_body();
    let mut needed = connection.needed_filler();
    let mut unused_polls = 0;
    while needed > 0 {
        yield_now().await;
        unused_polls = if connection.needed_filler() == needed { unused_polls + 1 } else { 0 };
        needed = connection.needed_filler();
        if unused_polls == MAX_UNUSED_POLLS {
            // actix does not read. It closes the connection after the response.
            return connection.end_input();
        }
    }
}

/// Returns the status with which a head that actix accepts is refused.
fn refusal(request: &Request) -> Option<StatusCode> {
    let uri = request.uri();
    // The parts of a target in absolute form.
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    if authority + uri.path_and_query().map_or(0, |path| path.as_str().len()) > MAX_TARGET_BYTES {
        return Some(StatusCode::URI_TOO_LONG);
    }
    let host = request.headers().get(HOST)?;
    (!is_valid_host(host.as_bytes())).then_some(StatusCode::BAD_REQUEST)
}

/// Whether the value of a `Host` header is `uri-host [ ":" port ]` (RFC 9112, section 3.2). Only the characters of the
/// host are checked.
fn is_valid_host(value: &[u8]) -> bool {
    let colon = value.iter().rposition(|&byte| byte == b':' || byte == b']').filter(|&index| value[index] == b':');
    let (host, port) = value.split_at(colon.unwrap_or(value.len()));
    let is_ip_literal = host.len() > 2 && host.starts_with(b"[") && host.ends_with(b"]");
    let name = if is_ip_literal { &host[1..host.len() - 1] } else { host };
    name.iter().all(|&byte| {
        byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte) || is_ip_literal && byte == b':'
    }) && port.iter().skip(1).all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use actix_http::header::{CONTENT_LENGTH, HeaderValue};
    use tokio::join;

    use super::*;
    use crate::transport::phase::Phase;

    /// A connection that has received the head of a request with this number of bytes of body.
    fn receiving_body(length: u16) -> Connection {
        let connection = Connection::new(None, 1024, Rc::default());
        let mut request = Request::new();
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        connection.start_request(&request);
        connection
    }

    #[tokio::test]
    async fn a_body_is_completed_while_the_filler_is_taken() {
        let connection = receiving_body(3);
        let reader = async {
            for _ in 0..3 {
                for _ in 1..MAX_UNUSED_POLLS {
                    yield_now().await;
                }
                assert_eq!(connection.take_filler(1), 1);
            }
        };
        join!(complete_body(&connection), reader);
        assert_eq!(connection.phase(), Phase::Filling { filler: 0, missing: 3 });
    }

    #[tokio::test]
    async fn the_input_ends_if_no_filler_is_taken() {
        let connection = receiving_body(3);
        complete_body(&connection).await;
        assert_eq!(connection.phase(), Phase::Closing { unread: true });
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_an_optional_port() {
        for good in ["", "a", "store.example", "a:80", "a:", "127.0.0.1:8080", "[::1]", "[::1]:80", "b%C3%BCro", "_x"] {
            assert!(is_valid_host(good.as_bytes()), "{good}");
        }
        for bad in
            ["a b", "a/b", "a:b", "a:80:80", "user@a", "a?b", "a#b", "[::1", "::1", "[]", "[a]b", "b\u{fc}ro", "<a>"]
        {
            assert!(!is_valid_host(bad.as_bytes()), "{bad}");
        }
    }
}
