//! The bytes of one connection: reads and writes them.
//!
//! A request is decoded when the response to the one before it is sent ([`heads`](super::heads),
//! [`bodies`](super::bodies)). Memory is bounded by
//! [`MAX_HEAD_BYTES`](super::heads) for a head, `http.max_body_bytes` for a body, and [`MAX_READ_AHEAD`] for what comes
//! after it.

use std::{future::poll_fn, io, mem::MaybeUninit, pin::Pin, task::Poll};

use actix_http::h1::Codec;
use bytes::BytesMut;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    time::Instant,
};

use crate::{
    connection::{End, State},
    connections::Slot,
};

const READ_BYTES: usize = 8 * 1024;

/// When this many bytes of later requests are buffered, the rest stays in the socket.
pub(super) const MAX_READ_AHEAD: usize = 8 * 1024;

/// Maximum number of bytes that are dropped after the final response.
const MAX_DROPPED_BYTES: usize = 1024 * 1024;

/// A connection with its codec.
pub(crate) struct Client<T> {
    pub(super) stream: T,
    pub(super) slot: Slot,
    pub(super) codec: Codec,
    pub(super) buffer: BytesMut,
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
        self.slot.connection.unless_ended(self.stream.flush()).await
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
