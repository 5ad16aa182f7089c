use std::{
    convert::Infallible,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use actix_http::body::{BodySize, MessageBody};
use actix_web::web::Bytes;

use super::connection::Connection;

/// Size in bytes of the slices in which actix takes a body. actix copies a slice to its write buffer when the buffer
/// holds less than [`WRITE_BUFFER_BYTES`].
const SLICE_BYTES: usize = 8 * 1024;

/// Together with one slice and a head: about 16 KiB for each connection.
pub(crate) const WRITE_BUFFER_BYTES: usize = 8 * 1024;

/// The body of a response in slices, so that a client that does not read its response holds little memory.
pub(crate) struct SlicedBody {
    size: BodySize,
    rest: Bytes,
    connection: Rc<Connection>,
}

impl SlicedBody {
    /// Slices a body that is in memory, as every body of this service is.
    pub(super) fn new(body: impl MessageBody, connection: Rc<Connection>) -> Self {
        let size = body.size();
        let rest = body.try_into_bytes().unwrap_or_else(|_| unreachable!("a handler returned a stream"));
        // The bytes of a file of the program are shared.
        if rest.len() > SLICE_BYTES && rest.is_unique() {
            connection.hold(rest.len());
        }
        Self { size, rest, connection }
    }

    /// A response without a body.
    pub(super) fn empty(connection: Rc<Connection>) -> Self {
        Self { size: BodySize::Sized(0), rest: Bytes::new(), connection }
    }
}

impl MessageBody for SlicedBody {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        let slice = self.rest.len().min(SLICE_BYTES);
        Poll::Ready((slice > 0).then(|| Ok(self.rest.split_to(slice))))
    }
}

impl Drop for SlicedBody {
    fn drop(&mut self) {
        self.connection.end_body();
    }
}
