//! Serves the requests of a connection, one after the other: a request reaches the application when the response to the
//! one before it is sent.

#[cfg(test)]
mod tests;

use actix_http::{
    ConnectionType, HttpMessage, Method, Request, RequestHead, Response, StatusCode,
    body::{BodySize, BoxBody, MessageBody},
    h1::{Codec, Message, MessageType},
    header::CONNECTION,
};
use actix_service::Service;
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{Decoder, Encoder};

use crate::{
    bodies::ReceivedBody,
    client::Client,
    connection::{End, State},
    heads::Head,
};

/// A larger body is not copied behind the head of its response.
const MAX_COPIED_BYTES: usize = 8 * 1024;

/// Option of `Connection`, with which HTTP/1.0 clients ask for further requests.
const KEEP_ALIVE: &str = "keep-alive";

/// Room for the head of a response.
const HEAD_BYTES: usize = 768;

/// Serves a connection until it ends.
///
/// # Errors
/// If the connection ends without a response, or before its response is sent.
pub(crate) async fn serve<T, S, B>(mut client: Client<T>, service: &S) -> Result<(), End>
where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request, Response: Into<Response<B>>, Error: Into<Response<BoxBody>>>,
    B: MessageBody,
{
    loop {
        let is_unread = match client.receive_head().await? {
            Head::Request(request) => {
                let is_complete = client.respond(request, service).await?;
                if client.codec.keep_alive() {
                    client.slot.enter(State::Idle);
                    continue;
                }
                !is_complete
            }
            Head::Refused(status) => {
                client.refuse(status).await?;
                true
            }
            Head::End => false,
        };
        return client.close(is_unread).await;
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Client<T> {
    /// Receives the body of a request, calls the service, and sends its response. Returns whether the whole request was
    /// read.
    async fn respond<S, B>(&mut self, mut request: Request, service: &S) -> Result<bool, End>
    where
        S: Service<Request, Response: Into<Response<B>>, Error: Into<Response<BoxBody>>>,
        B: MessageBody,
    {
        let body = self.receive_body(&request).await?;
        let is_complete = body.is_ok();
        if body != Ok(Bytes::new()) {
            request.extensions_mut().insert(ReceivedBody(body));
        }
        // With `Upgrade: websocket`, the request may end at another byte.
        let is_stream = self.codec.message_type() == MessageType::Stream;
        if is_complete && !is_stream && self.codec.upgrade() {
            self.ignore_upgrade(request.head());
        }
        let is_head = request.method() == Method::HEAD;
        request.head_mut().peer_addr = self.slot.connection.peer;
        self.slot.enter(State::Request);
        // In a box, because connections without a request have this future, too.
        let mut call = Box::pin(service.call(request));
        let response = tokio::select! {
            biased;
            response = &mut call => response,
            end = self.read_ahead() => return Err(end),
        };
        drop(call);
        let (mut head, size, body) = match response {
            Ok(response) => parts(response.into()),
            Err(error) => parts(error.into()),
        };
        if !is_complete || is_stream || !self.slot.connections.is_serving() {
            head.head_mut().set_connection_type(ConnectionType::Close);
        }
        self.slot.enter(State::Response);
        self.send(head, size, if is_head { Bytes::new() } else { body })
            .await?;
        Ok(is_complete)
    }

    /// Ignores that the client requests another protocol (RFC 9110, section 7.8). The codec remembers the head that it
    /// decoded last, so it gets one that does not request this.
    fn ignore_upgrade(&mut self, head: &RequestHead) {
        let method = &head.method;
        let version = head.version;
        let keeps_alive = head
            .headers
            .get_all(CONNECTION)
            .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
            .any(|option| {
                option
                    .trim_ascii()
                    .eq_ignore_ascii_case(KEEP_ALIVE.as_bytes())
            });
        let option = if keeps_alive { KEEP_ALIVE } else { "" };
        let plain = format!(
            "{method} / {version:?}\r\nHost:\r\nContent-Length: 0\r\nConnection: {option}\r\n\r\n"
        );
        let decoded = self.codec.decode(&mut BytesMut::from(plain.as_str()));
        debug_assert!(decoded.is_ok_and(|message| message.is_some()));
    }

    /// Refuses a head.
    async fn refuse(&mut self, status: StatusCode) -> Result<(), End> {
        let client = self.slot.connection.peer.map(|peer| peer.ip());
        (self.slot.connections.settings.on_refusal)(client, status);
        // The last request does not change this response.
        self.codec = Codec::new(self.slot.connections.config.clone());
        let mut response = Response::with_body(status, ());
        response
            .head_mut()
            .set_connection_type(ConnectionType::Close);
        self.slot.enter(State::Response);
        self.send(response, BodySize::Sized(0), Bytes::new()).await
    }

    /// Sends a response. A file of the program is shared by all responses; a list belongs to its response, so its bytes
    /// are counted until the client has read them.
    async fn send(
        &mut self,
        head: Response<()>,
        size: BodySize,
        mut body: Bytes,
    ) -> Result<(), End> {
        let copied = body.len().min(MAX_COPIED_BYTES);
        let mut bytes = BytesMut::with_capacity(HEAD_BYTES + copied);
        self.codec
            .encode(Message::Item((head, size)), &mut bytes)
            .map_err(|_| End::Client)?;
        bytes.extend_from_slice(&body[..copied]);
        if body.len() > copied && body.is_unique() {
            self.slot
                .connections
                .hold(&self.slot.connection, body.len());
        }
        body.advance(copied);
        self.write(&bytes).await?;
        drop(bytes);
        self.write(&body).await?;
        self.slot.connections.release(&self.slot.connection);
        Ok(())
    }
}

/// Every body of this service is in memory.
fn parts<B: MessageBody>(response: Response<B>) -> (Response<()>, BodySize, Bytes) {
    let (head, body) = response.into_parts();
    let size = body.size();
    (
        head,
        size,
        body.try_into_bytes()
            .unwrap_or_else(|_| unreachable!("a handler returned a stream")),
    )
}
