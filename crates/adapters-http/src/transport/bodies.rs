//! Receives bodies, up to their end or the first byte beyond the maximum.

use std::io;

use actix_http::{
    HttpMessage, Request,
    error::PayloadError,
    h1::{Message, MessageType},
    header::TRANSFER_ENCODING,
};
use actix_web::web::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::Decoder;

use super::{
    client::Client,
    connection::{End, State},
    framing::Framing,
};
use crate::body::declared_length;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A complete body, or why there is none.
pub(super) type ReceivedBody = Result<Bytes, PayloadError>;

impl<T: AsyncRead + AsyncWrite + Unpin> Client<T> {
    /// Receives the body of a request. If the client expects a 100, it gets one before.
    pub(super) async fn receive_body(&mut self, request: &Request) -> Result<ReceivedBody, End> {
        // If the length cannot be represented, it is too large.
        let declared = declared_length(request.headers())
            .map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let has_body = match self.codec.message_type() {
            MessageType::None => false,
            MessageType::Payload => true,
            MessageType::Stream => declared.is_some_and(|length| length > 0),
        };
        if !has_body {
            return Ok(Ok(Bytes::new()));
        }
        if declared.is_some_and(|length| length > self.slot.connections.limits.max_body_bytes) {
            return Ok(Err(PayloadError::Overflow));
        }
        if request.head().expect() {
            self.slot.enter(State::Response);
            self.write(CONTINUE).await?;
        }
        self.slot.enter(State::Body);
        let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let framing = is_chunked.then(Framing::default);
        self.collect_body(declared, framing).await
    }

    /// `framing` checks a chunked body.
    async fn collect_body(
        &mut self,
        declared: Option<usize>,
        mut framing: Option<Framing>,
    ) -> Result<ReceivedBody, End> {
        // With `Upgrade: websocket`, the codec does not end the body after its declared length.
        let length = declared.filter(|_| self.codec.message_type() == MessageType::Stream);
        let mut body = BytesMut::with_capacity(declared.unwrap_or_default());
        let mut accepted = BytesMut::new();
        loop {
            let bytes = match &mut framing {
                Some(framing) => {
                    let count = framing.accept(&self.buffer);
                    accepted.unsplit(self.buffer.split_to(count));
                    &mut accepted
                }
                None => &mut self.buffer,
            };
            match self.codec.decode(bytes) {
                Ok(Some(Message::Chunk(Some(chunk)))) => body.extend_from_slice(&chunk),
                Ok(Some(Message::Chunk(None))) => return Ok(Ok(body.freeze())),
                Ok(Some(Message::Item(_))) => unreachable!("the body has not ended"),
                Err(_) => return Ok(Err(PayloadError::EncodingCorrupted)),
                Ok(None) if framing.as_ref().is_some_and(Framing::is_over) => {
                    return Ok(Err(PayloadError::EncodingCorrupted));
                }
                Ok(None) => match self.read().await {
                    Ok(0) => return Ok(Err(PayloadError::Incomplete(None))),
                    Ok(_) => {}
                    Err(End::Timeout) => return Ok(Err(too_slow())),
                    Err(end) => return Err(end),
                },
            }
            if let Some(length) = length.filter(|&length| body.len() >= length) {
                body.truncate(length);
                return Ok(Ok(body.freeze()));
            }
            if body.len() > self.slot.connections.limits.max_body_bytes {
                return Ok(Err(PayloadError::Overflow));
            }
        }
    }
}

/// The error of a body that has not arrived within its timeout.
fn too_slow() -> PayloadError {
    PayloadError::Io(io::ErrorKind::TimedOut.into())
}
