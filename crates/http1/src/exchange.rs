//! Drives a connection from state to state. Its requests are served one after the other: a request is decoded when the
//! response to the one before it is sent.
//!
//! Memory is bounded by the maximum of [`heads`](super::heads) for a head, `http.max_body_bytes` for a body, and that of
//! [`wire`](super::wire) for what comes after it.

#[cfg(test)]
mod tests;

use actix_http::{
    ConnectionType, HttpMessage, Method, Request, RequestHead, Response, StatusCode,
    body::{BodySize, BoxBody, MessageBody},
    h1::{Codec, Message, MessageType},
    header::CONNECTION,
};
use actix_service::Service;
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{Decoder, Encoder};

use crate::{
    bodies::{BodyDecoder, BodyError, ReceivedBody},
    connection::{End, State},
    heads::{Head, HeadDecoder},
    pool::Slot,
    wire::Wire,
};

/// A larger body is not copied behind the head of its response.
const MAX_COPIED_BYTES: usize = 8 * 1024;

/// Option of `Connection`, with which HTTP/1.0 clients ask for further requests.
const KEEP_ALIVE: &str = "keep-alive";

/// Room for the head of a response.
const HEAD_BYTES: usize = 768;

/// Response to a head with `Expect: 100-continue`.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A connection with its codec.
pub(crate) struct Exchange<T> {
    wire: Wire<T>,
    slot: Slot,
    codec: Codec,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Exchange<T> {
    pub(crate) fn new(stream: T, slot: Slot) -> Self {
        slot.enter(State::Head);
        Self {
            wire: Wire::new(stream, slot.connection()),
            codec: slot.pool.codec(),
            slot,
        }
    }

    /// Serves the connection until it ends.
    ///
    /// # Errors
    /// If it ends without a response, or before its response is sent.
    pub(crate) async fn serve<S, B>(mut self, service: &S) -> Result<(), End>
    where
        S: Service<Request, Response: Into<Response<B>>, Error: Into<Response<BoxBody>>>,
        B: MessageBody,
    {
        loop {
            let is_unread = match self.receive_head().await? {
                Head::Request(request) => {
                    let is_complete = self.respond(request, service).await?;
                    if self.codec.keep_alive() {
                        self.slot.enter(State::Idle);
                        continue;
                    }
                    !is_complete
                }
                Head::Refused(status) => {
                    self.refuse(status).await?;
                    true
                }
                Head::End => false,
            };
            self.slot.enter(State::Closing);
            return self.wire.close(is_unread).await;
        }
    }

    async fn receive_head(&mut self) -> Result<Head, End> {
        let mut decoder = HeadDecoder::default();
        loop {
            if let Some(head) = decoder.decode(&mut self.codec, self.wire.buffer()) {
                return Ok(head);
            }
            if !self.wire.buffer().is_empty() && self.slot.state() == State::Idle {
                self.slot.enter(State::Head);
            }
            let is_idle = self.slot.state() == State::Idle;
            match self.wire.read().await {
                Ok(1..) => {}
                Ok(0) => return Ok(Head::End),
                Err(End::Timeout | End::Stop) if is_idle => return Ok(Head::End),
                Err(End::Timeout) => return Ok(Head::Refused(StatusCode::REQUEST_TIMEOUT)),
                Err(end) => return Err(end),
            }
        }
    }

    /// Receives the body of a request. If the client expects a 100, it gets one before. Returns `None` if the request
    /// has no body.
    async fn receive_body(&mut self, request: &Request) -> Result<Option<ReceivedBody>, End> {
        let max = self.slot.pool.settings.limits.max_body_bytes;
        let Some(mut decoder) = BodyDecoder::new(request, &self.codec, max) else {
            return Ok(None);
        };
        if decoder.declares_too_much() {
            return Ok(Some(ReceivedBody(Err(BodyError::TooLarge))));
        }
        if request.head().expect() {
            self.slot.enter(State::Response);
            self.wire.write(CONTINUE).await?;
        }
        self.slot.enter(State::Body);
        loop {
            if let Some(body) = decoder.decode(&mut self.codec, self.wire.buffer()) {
                return Ok(Some(ReceivedBody(body)));
            }
            let error = match self.wire.read().await {
                Ok(1..) => continue,
                Ok(0) => BodyError::Malformed,
                Err(End::Timeout) => BodyError::TooSlow,
                Err(end) => return Err(end),
            };
            return Ok(Some(ReceivedBody(Err(error))));
        }
    }

    /// Receives the body of a request, calls the service, and sends its response. Returns whether the whole request was
    /// read.
    async fn respond<S, B>(&mut self, mut request: Request, service: &S) -> Result<bool, End>
    where
        S: Service<Request, Response: Into<Response<B>>, Error: Into<Response<BoxBody>>>,
        B: MessageBody,
    {
        let body = self.receive_body(&request).await?;
        let is_complete = !matches!(body, Some(ReceivedBody(Err(_))));
        let is_empty = matches!(&body, Some(ReceivedBody(Ok(bytes))) if bytes.is_empty());
        if let Some(body) = body
            && !is_empty
        {
            request.extensions_mut().insert(body);
        }
        // With `Upgrade: websocket`, the request may end at another byte.
        let is_stream = self.codec.message_type() == MessageType::Stream;
        if is_complete && !is_stream && self.codec.upgrade() {
            self.ignore_upgrade(request.head());
        }
        let is_head = request.method() == Method::HEAD;
        request.head_mut().peer_addr = self.slot.peer();
        // In a box, because connections without a request have this future, too.
        let mut parts = Box::pin(self.call(request, service)).await?;
        if !is_complete || is_stream || !self.slot.pool.is_serving() {
            parts.close_connection();
        }
        if is_head {
            parts.body = Bytes::new();
        }
        self.send(parts).await?;
        Ok(is_complete)
    }

    /// Calls the service, and returns the parts of its response.
    async fn call<S, B>(&mut self, request: Request, service: &S) -> Result<Parts, End>
    where
        S: Service<Request, Response: Into<Response<B>>, Error: Into<Response<BoxBody>>>,
        B: MessageBody,
    {
        self.slot.enter(State::Request);
        let response = tokio::select! {
            biased;
            response = service.call(request) => response,
            end = self.wire.read_ahead() => return Err(end),
        };
        Ok(match response {
            Ok(response) => Parts::of(response.into()),
            Err(error) => Parts::of(error.into()),
        })
    }

    /// Ignores that the client requests another protocol (RFC 9110, section 7.8). The codec remembers the head that it
    /// decoded last, so it gets one that does not request this.
    fn ignore_upgrade(&mut self, head: &RequestHead) {
        let method = &head.method;
        let version = head.version;
        let option = if asks_keep_alive(head) {
            KEEP_ALIVE
        } else {
            ""
        };
        let plain = format!(
            "{method} / {version:?}\r\nHost:\r\nContent-Length: 0\r\nConnection: {option}\r\n\r\n"
        );
        let decoded = self.codec.decode(&mut BytesMut::from(plain.as_str()));
        debug_assert!(decoded.is_ok_and(|message| message.is_some()));
    }

    /// Refuses a head.
    async fn refuse(&mut self, status: StatusCode) -> Result<(), End> {
        let client = self.slot.peer().map(|peer| peer.ip());
        (self.slot.pool.settings.on_refusal)(client, status);
        // The last request does not change this response.
        self.codec = self.slot.pool.codec();
        let mut parts = Parts::of(Response::with_body(status, Bytes::new()));
        parts.close_connection();
        self.send(parts).await
    }

    /// Sends a response. A file of the program is shared by all responses; a list belongs to its response, so its bytes
    /// are counted until the client has read them.
    async fn send(&mut self, parts: Parts) -> Result<(), End> {
        self.slot.enter(State::Response);
        let mut body = parts.body;
        let copied = body.len().min(MAX_COPIED_BYTES);
        let mut bytes = BytesMut::with_capacity(HEAD_BYTES + copied);
        let head = Message::Item((parts.head, parts.size));
        let encoded = self.codec.encode(head, &mut bytes);
        encoded.map_err(|_| End::Client)?;
        bytes.extend_from_slice(&body[..copied]);
        if body.len() > copied && body.is_unique() {
            self.slot.hold(body.len());
        }
        let rest = body.split_off(copied);
        // A body that is copied as a whole is freed.
        drop(body);
        self.wire.write(&bytes).await?;
        drop(bytes);
        self.wire.write(&rest).await?;
        self.slot.release();
        Ok(())
    }
}

/// The parts of a response.
struct Parts {
    head: Response<()>,
    /// Size of the body that the head declares.
    size: BodySize,
    body: Bytes,
}

impl Parts {
    fn of<B: MessageBody>(response: Response<B>) -> Self {
        let (head, body) = response.into_parts();
        let size = body.size();
        let Ok(body) = body.try_into_bytes() else {
            unreachable!("a handler returned a stream")
        };
        Self { head, size, body }
    }

    fn close_connection(&mut self) {
        let head = self.head.head_mut();
        head.set_connection_type(ConnectionType::Close);
    }
}

fn asks_keep_alive(head: &RequestHead) -> bool {
    for value in head.headers.get_all(CONNECTION) {
        for option in value.as_bytes().split(|&byte| byte == b',') {
            let option = option.trim_ascii();
            if option.eq_ignore_ascii_case(KEEP_ALIVE.as_bytes()) {
                return true;
            }
        }
    }
    false
}
