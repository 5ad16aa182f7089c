//! Receives bodies, up to their end or the first byte beyond the maximum.

use actix_http::{
    HttpMessage, Request,
    h1::{Message, MessageType},
    header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING},
};
use bytes::{Bytes, BytesMut};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::Decoder;

use crate::{
    client::Client,
    connection::{End, State},
    framing::Framing,
};

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A body that is not empty, among the extensions of its request.
pub struct ReceivedBody(pub Result<Bytes, BodyError>);

/// Why a request has no complete body. The connection ends after the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BodyError {
    /// It has more bytes than the maximum.
    #[error("the body is too large")]
    TooLarge,
    /// It has not arrived within its timeout.
    #[error("the body is too slow")]
    TooSlow,
    /// Its framing is invalid, or the client ended the connection within it.
    #[error("the body is malformed")]
    Malformed,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Client<T> {
    /// Receives the body of a request. If the client expects a 100, it gets one before.
    pub(super) async fn receive_body(
        &mut self,
        request: &Request,
    ) -> Result<Result<Bytes, BodyError>, End> {
        let declared = declared_length(request.headers());
        let has_body = match self.codec.message_type() {
            MessageType::None => false,
            MessageType::Payload => true,
            MessageType::Stream => declared.is_some_and(|length| length > 0),
        };
        if !has_body {
            return Ok(Ok(Bytes::new()));
        }
        if declared
            .is_some_and(|length| length > self.slot.connections.settings.limits.max_body_bytes)
        {
            return Ok(Err(BodyError::TooLarge));
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
    ) -> Result<Result<Bytes, BodyError>, End> {
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
                Err(_) => return Ok(Err(BodyError::Malformed)),
                Ok(None) if framing.as_ref().is_some_and(Framing::is_over) => {
                    return Ok(Err(BodyError::Malformed));
                }
                Ok(None) => match self.read().await {
                    Ok(0) => return Ok(Err(BodyError::Malformed)),
                    Ok(_) => {}
                    Err(End::Timeout) => return Ok(Err(BodyError::TooSlow)),
                    Err(end) => return Err(end),
                },
            }
            if let Some(length) = length.filter(|&length| body.len() >= length) {
                body.truncate(length);
                return Ok(Ok(body.freeze()));
            }
            if body.len() > self.slot.connections.settings.limits.max_body_bytes {
                return Ok(Err(BodyError::TooLarge));
            }
        }
    }
}

/// Length of the body according to its header. actix refuses a header that is not a number. If the length cannot be
/// represented, it is too large.
fn declared_length(headers: &HeaderMap) -> Option<usize> {
    let text = headers.get(CONTENT_LENGTH)?.to_str().ok()?;
    let length = text.trim().parse::<u64>().ok()?;
    Some(usize::try_from(length).unwrap_or(usize::MAX))
}
