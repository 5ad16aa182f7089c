//! Decodes bodies, up to their end or the first byte beyond the maximum.

use actix_http::{
    HttpMessage, Request,
    h1::{Codec, Message, MessageType},
    header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING},
};
use bytes::{Bytes, BytesMut};
use tokio_util::codec::Decoder;

use crate::framing::Framing;

/// The body of a request, or why it did not arrive, among the extensions of the request. An empty one is left out.
#[derive(Debug)]
pub struct ReceivedBody(pub Result<Bytes, BodyError>);

/// Why a request has no complete body. The connection ends after the response.
#[derive(Debug, Clone, Copy)]
pub enum BodyError {
    /// It has more bytes than the maximum.
    TooLarge,
    /// It has not arrived within its timeout.
    TooSlow,
    /// Its framing is invalid, or the client ended the connection within it.
    Malformed,
}

/// Decodes the body of one request.
pub(crate) struct BodyDecoder {
    /// The length that the request declares.
    declared: Option<usize>,
    /// With `Upgrade: websocket`, the codec does not end the body after its declared length.
    is_endless: bool,
    /// Checks a chunked body.
    framing: Option<Framing>,
    /// Bytes that `framing` has accepted and the codec has not decoded.
    accepted: BytesMut,
    body: BytesMut,
    max: usize,
}

impl BodyDecoder {
    /// Returns the decoder of a body of at most this many bytes. `None`: the request has no body.
    pub(crate) fn new(request: &Request, codec: &Codec, max: usize) -> Option<Self> {
        let kind = codec.message_type();
        if kind == MessageType::None {
            return None;
        }
        let declared = declared_length(request.headers());
        let is_endless = kind == MessageType::Stream;
        if is_endless && declared.unwrap_or_default() == 0 {
            return None;
        }
        let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
        Some(Self {
            declared,
            is_endless,
            framing: is_chunked.then(Framing::default),
            accepted: BytesMut::new(),
            body: BytesMut::with_capacity(declared.unwrap_or_default().min(max)),
            max,
        })
    }

    /// Returns whether the request declares more bytes than the maximum.
    pub(crate) fn declares_too_much(&self) -> bool {
        self.declared.is_some_and(|length| length > self.max)
    }

    /// Returns the body, or why it cannot be received. `None`: more bytes are needed.
    pub(crate) fn decode(
        &mut self,
        codec: &mut Codec,
        buffer: &mut BytesMut,
    ) -> Option<Result<Bytes, BodyError>> {
        loop {
            let bytes = match &mut self.framing {
                Some(framing) => {
                    let count = framing.accept(buffer);
                    self.accepted.unsplit(buffer.split_to(count));
                    &mut self.accepted
                }
                None => &mut *buffer,
            };
            match codec.decode(bytes) {
                Ok(Some(Message::Chunk(Some(chunk)))) => self.body.extend_from_slice(&chunk),
                Ok(Some(Message::Chunk(None))) => return Some(Ok(self.body.split().freeze())),
                Ok(Some(Message::Item(_))) => unreachable!("the body has not ended"),
                Err(_) => return Some(Err(BodyError::Malformed)),
                Ok(None) => {
                    let is_over = self.framing.as_ref().is_some_and(Framing::is_over);
                    return is_over.then_some(Err(BodyError::Malformed));
                }
            }
            if self.is_endless
                && let Some(length) = self.declared
                && self.body.len() >= length
            {
                self.body.truncate(length);
                return Some(Ok(self.body.split().freeze()));
            }
            if self.body.len() > self.max {
                return Some(Err(BodyError::TooLarge));
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
