//! The bytes of one connection: reads and writes them, unless the connection ends before.

use std::{future::poll_fn, io, mem::MaybeUninit, pin::Pin, rc::Rc, task::Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::connection::{Connection, End};

const READ_BYTES: usize = 8 * 1024;

/// When this many bytes of later requests are buffered, the rest stays in the socket.
const MAX_READ_AHEAD: usize = 8 * 1024;

/// Maximum number of bytes that are dropped after the final response.
const MAX_DROPPED_BYTES: usize = 1024 * 1024;

/// The stream of a connection, and what was read of it and is not decoded yet.
pub(crate) struct Wire<T> {
    stream: T,
    connection: Rc<Connection>,
    buffer: BytesMut,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Wire<T> {
    pub(crate) fn new(stream: T, connection: Rc<Connection>) -> Self {
        Self {
            stream,
            connection,
            buffer: BytesMut::new(),
        }
    }

    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Reads ahead until the connection ends. A reset ends it. The end of the input does not, because a client that has
    /// closed its sending side still reads.
    pub(crate) async fn read_ahead(&mut self) -> End {
        while self.buffer.len() < MAX_READ_AHEAD {
            match self.read().await {
                Ok(0) => break,
                Ok(_) => {}
                Err(end) => return end,
            }
        }
        self.connection.ended().await
    }

    /// Reads more bytes, and returns their number; 0 at the end of the input. Bytes that have arrived come before an
    /// end for another reason.
    pub(crate) async fn read(&mut self) -> Result<usize, End> {
        let Self {
            stream,
            connection,
            buffer,
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
        connection.unless_ended(reading).await
    }

    /// Writes all bytes. Each part that the client takes starts the timeout again.
    pub(crate) async fn write(&mut self, mut bytes: &[u8]) -> Result<(), End> {
        while !bytes.is_empty() {
            let writing = self.stream.write(bytes);
            let count = self.connection.unless_ended(writing).await?;
            if count == 0 {
                return Err(End::Client);
            }
            bytes = &bytes[count..];
            if !bytes.is_empty() {
                self.connection.extend_timeout();
            }
        }
        self.connection.unless_ended(self.stream.flush()).await
    }

    /// Closes the sending side at once, and then drops unread input, so that closing does not reset the connection
    /// before the client has read its response (RFC 9112, section 9.6).
    pub(crate) async fn close(mut self, is_unread: bool) -> Result<(), End> {
        self.connection.unless_ended(self.stream.shutdown()).await?;
        let mut dropped = self.buffer.len();
        while (is_unread || dropped > 0) && dropped < MAX_DROPPED_BYTES {
            self.buffer = BytesMut::new();
            match self.read().await? {
                0 => break,
                count => dropped += count,
            }
        }
        Ok(())
    }
}
