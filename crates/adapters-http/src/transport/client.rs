//! The bytes of one connection: reads requests with the codec of actix, and writes responses.
//!
//! A request is decoded when the response to the one before it is sent. Memory is bounded by
//! [`MAX_HEAD_BYTES`](super::heads) for a head, `http.max_body_bytes` for a body, and [`MAX_READ_AHEAD`] for what comes
//! after it.

use std::{future::poll_fn, io, mem::MaybeUninit, pin::Pin, task::Poll};

use actix_http::{
    HttpMessage, Request,
    error::PayloadError,
    h1::{Codec, Message, MessageType},
};
use actix_web::web::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    time::Instant,
};
use tokio_util::codec::Decoder;

use super::{
    connection::{End, State},
    connections::Slot,
};
use crate::body::declared_length;

const READ_BYTES: usize = 8 * 1024;

/// When this many bytes of later requests are buffered, the rest stays in the socket.
pub(super) const MAX_READ_AHEAD: usize = 8 * 1024;

/// Maximum number of bytes that are dropped after the final response.
const MAX_DROPPED_BYTES: usize = 1024 * 1024;

/// A complete body, or why there is none.
pub(super) type ReceivedBody = Result<Bytes, PayloadError>;

/// A connection with its codec.
pub(crate) struct Client<T> {
    pub(super) stream: T,
    pub(super) slot: Slot,
    pub(super) codec: Codec,
    pub(super) buffer: BytesMut,
    /// Length of the body of the current request, if it is declared.
    declared: Option<usize>,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Client<T> {
    pub(crate) fn new(stream: T, slot: Slot) -> Self {
        slot.enter(State::Head);
        let codec = Codec::new(slot.connections.config.clone());
        Self {
            stream,
            slot,
            codec,
            buffer: BytesMut::new(),
            declared: None,
        }
    }

    /// Receives the body. `None`: the application has to decide first, because the client waits for a 100 before it
    /// sends the body (RFC 9110, section 10.1.1).
    pub(super) async fn receive_body(
        &mut self,
        request: &Request,
    ) -> Result<Option<ReceivedBody>, End> {
        // If the length cannot be represented, it is too large.
        let declared = declared_length(request.headers())
            .map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        self.declared = declared;
        let has_body = match self.codec.message_type() {
            MessageType::None => false,
            MessageType::Payload => true,
            MessageType::Stream => declared.is_some_and(|length| length > 0),
        };
        Ok(if !has_body {
            Some(Ok(Bytes::new()))
        } else if declared
            .is_some_and(|length| length > self.slot.connections.limits.max_body_bytes)
        {
            Some(Err(PayloadError::Overflow))
        } else if request.head().expect() {
            None
        } else {
            Some(self.collect_body().await?)
        })
    }

    /// Receives a body up to its end, or the first byte beyond the maximum.
    pub(super) async fn collect_body(&mut self) -> Result<ReceivedBody, End> {
        // With `Upgrade: websocket` and CONNECT, the codec does not end the body after its declared length.
        let length = self
            .declared
            .filter(|_| self.codec.message_type() == MessageType::Stream);
        let mut body = BytesMut::with_capacity(self.declared.unwrap_or_default());
        loop {
            match self.codec.decode(&mut self.buffer) {
                Ok(Some(Message::Chunk(Some(chunk)))) => body.extend_from_slice(&chunk),
                Ok(Some(Message::Chunk(None))) => return Ok(Ok(body.freeze())),
                Ok(Some(Message::Item(_))) => unreachable!("the body has not ended"),
                Err(_) => return Ok(Err(PayloadError::EncodingCorrupted)),
                Ok(None) => {
                    if matches!(self.slot.connection.state.get(), State::Idle | State::Head) {
                        self.slot.enter(State::Body);
                    }
                    match self.read().await {
                        Ok(0) => return Ok(Err(PayloadError::Incomplete(None))),
                        Ok(_) => {}
                        Err(End::Timeout) => return Ok(Err(too_slow())),
                        Err(end) => return Err(end),
                    }
                }
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

    /// Reads ahead until the connection ends, so that a client that closes it is noticed.
    pub(super) async fn read_ahead(&mut self) -> End {
        while self.buffer.len() < MAX_READ_AHEAD {
            match self.read().await {
                Ok(0) => break,
                Ok(_) => {}
                Err(end) => return end,
            }
        }
        self.slot.connection.ended().await
    }

    /// Reads more bytes, and returns their number; 0 at the end of the input. Bytes that have arrived come before an
    /// end for another reason.
    pub(super) async fn read(&mut self) -> Result<usize, End> {
        let Self {
            stream,
            slot,
            buffer,
            ..
        } = self;
        let reading = poll_fn(|context| {
            let mut bytes = [MaybeUninit::uninit(); READ_BYTES];
            let mut read = ReadBuf::uninit(&mut bytes);
            match Pin::new(&mut *stream).poll_read(context, &mut read) {
                // A client with TLS has closed without a closing message. The framing of HTTP shows a request that is
                // cut.
                Poll::Ready(Err(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
                    Poll::Ready(Err(error))
                }
                Poll::Ready(_) => {
                    buffer.extend_from_slice(read.filled());
                    Poll::Ready(Ok(read.filled().len()))
                }
                Poll::Pending => Poll::Pending,
            }
        });
        slot.connection.unless_ended(reading).await
    }

    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> Result<(), End> {
        while !bytes.is_empty() {
            let count = self
                .slot
                .connection
                .unless_ended(self.stream.write(bytes))
                .await?;
            if count == 0 {
                return Err(End::Client);
            }
            bytes = &bytes[count..];
            if !bytes.is_empty() {
                self.slot.connection.last_progress.set(Instant::now());
            }
        }
        Ok(())
    }

    /// Closes the sending side at once, and then drops unread input, so that closing does not reset the connection
    /// before the client has read its response (RFC 9112, section 9.6).
    pub(super) async fn close(mut self, is_unread: bool) -> Result<(), End> {
        self.slot.enter(State::Closing);
        self.slot
            .connection
            .unless_ended(self.stream.shutdown())
            .await?;
        let mut dropped = self.buffer.len();
        while (is_unread || dropped > 0) && dropped < MAX_DROPPED_BYTES {
            self.buffer.clear();
            match self.read().await? {
                0 => break,
                count => dropped += count,
            }
        }
        Ok(())
    }
}

/// The error of a body that has not arrived within its timeout.
pub(super) fn too_slow() -> PayloadError {
    PayloadError::Io(io::ErrorKind::TimedOut.into())
}
