//! Serves the requests of a connection, one after the other: a request reaches the application when the response to the
//! one before it is sent.

#[cfg(test)]
mod tests;

use actix_http::{
    ConnectionType, HttpMessage, Payload, Request, Response,
    body::{BodySize, MessageBody},
    error::PayloadError,
    h1::{Message, MessageType},
    header::UPGRADE,
};
use actix_service::Service;
use actix_web::{
    Error,
    http::{Method, StatusCode},
    web::{Buf, Bytes, BytesMut},
};
use futures_util::{StreamExt, stream};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::oneshot,
    time::timeout,
};
use tokio_util::codec::Encoder;

use super::{
    client::{Client, ReceivedBody, too_slow},
    connection::{End, State},
    heads::Head,
};

/// A larger body is not copied behind the head of its response.
const MAX_COPIED_BYTES: usize = 8 * 1024;

/// Room for the head of a response.
const HEAD_BYTES: usize = 768;

/// Receives the sender of a body when the application reads it.
type WantedBody = oneshot::Receiver<oneshot::Sender<ReceivedBody>>;

/// Serves a connection until it ends.
///
/// # Errors
/// If the connection ends without a response, or before its response is sent.
pub(crate) async fn serve<T, S, B>(mut client: Client<T>, service: &S) -> Result<(), End>
where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request, Response: Into<Response<B>>, Error = Error>,
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
        S: Service<Request, Response: Into<Response<B>>, Error = Error>,
        B: MessageBody,
    {
        let body = self.receive_body(&request).await?;
        let mut is_complete = matches!(body, Some(Ok(_)));
        let (payload, wanted) = match body {
            Some(Ok(bytes)) if bytes.is_empty() => (Payload::None, None),
            Some(body) => (
                Payload::Stream {
                    payload: stream::iter([body]).boxed_local(),
                },
                None,
            ),
            None => expected_body(),
        };
        *request.payload() = payload;
        let is_head = request.method() == Method::HEAD;
        // In another protocol (`Upgrade`, CONNECT), the request may end at another byte.
        let is_upgrade = request.headers().contains_key(UPGRADE)
            || self.codec.message_type() == MessageType::Stream;
        request.head_mut().peer_addr = self.slot.connection.peer;
        self.slot.enter(State::Request);
        // In a box, because connections without a request have this future, too.
        let mut call = Box::pin(service.call(request));
        let response = tokio::select! {
            biased;
            response = &mut call => response,
            end = self.pass_on(wanted, &mut is_complete) => return Err(end),
        };
        drop(call);
        let (mut head, size, body) = match response {
            Ok(response) => parts(response.into()),
            Err(error) => parts(Response::from(error)),
        };
        if !is_complete || is_upgrade || !self.slot.connections.is_serving() {
            head.head_mut().set_connection_type(ConnectionType::Close);
        }
        self.slot.enter(State::Response);
        self.send(head, size, if is_head { Bytes::new() } else { body })
            .await?;
        Ok(is_complete)
    }

    /// Passes on the body that a client sends after the status 100, once the application reads it, and then reads
    /// ahead. Resolves when the connection ends.
    async fn pass_on(&mut self, wanted: Option<WantedBody>, is_complete: &mut bool) -> End {
        let Some(wanted) = wanted else {
            return self.read_ahead().await;
        };
        let sender = tokio::select! {
            biased;
            Ok(sender) = wanted => sender,
            end = self.read_ahead() => return end,
        };
        if let Err(end) = self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await {
            return end;
        }
        // The application has the request: its state stays, and no other connection takes its place.
        let limit = self.slot.connections.limits.body_timeout;
        match timeout(limit, self.collect_body())
            .await
            .unwrap_or_else(|_| Ok(Err(too_slow())))
        {
            Ok(body) => {
                *is_complete = body.is_ok();
                // Fails if the application does not read it any more.
                let _ = sender.send(body);
                self.read_ahead().await
            }
            Err(end) => end,
        }
    }

    /// Refuses a head.
    async fn refuse(&mut self, status: StatusCode) -> Result<(), End> {
        self.slot
            .connections
            .log
            .record_refusal(self.slot.connection.peer, status);
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
        self.slot
            .connection
            .unless_ended(self.stream.flush())
            .await?;
        self.slot.connections.release(&self.slot.connection);
        Ok(())
    }
}

/// A body that is received when the application reads it.
fn expected_body() -> (Payload, Option<WantedBody>) {
    let (wanted, receiver) = oneshot::channel();
    let body = async {
        let (sender, body) = oneshot::channel();
        let _ = wanted.send(sender);
        // Fails if the connection has ended, and its request with it.
        body.await.unwrap_or(Err(PayloadError::Incomplete(None)))
    };
    (
        Payload::Stream {
            payload: stream::once(body).boxed_local(),
        },
        Some(receiver),
    )
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
