//! Passes the body of a response to actix in slices. actix copies each piece of a body to the write buffer of its
//! connection, so a client that does not read would hold the whole body. With slices of 8 KiB and a write buffer of
//! 8 KiB, the buffer has at most 16 KiB and a head. A file of the program is shared by all responses; a list belongs to
//! its response, so its bytes are counted until the client has read them.

use std::{
    convert::Infallible,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use actix_http::body::{BodySize, MessageBody};
use actix_web::web::Bytes;

use super::connection::Connection;

const SLICE_BYTES: usize = 8 * 1024;

/// actix takes another slice if its write buffer holds less than this.
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
            connection.response.hold(rest.len());
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
        self.connection.response.end_body();
    }
}
