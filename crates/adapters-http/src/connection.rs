//! A connection that ends when nothing was answered on it for too long.
//!
//! actix has a deadline for the head of a connection's first request and for idle connections. It has none for the
//! head of a later request, for a body that nobody reads, or for a client that does not take its answer. This stream
//! covers them all by one rule: so many seconds after its last written byte, a connection is closed.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

pin_project! {
    /// A stream whose reads and writes fail once nothing was written for `patience`.
    pub(crate) struct Connection<T> {
        #[pin]
        stream: T,
        patience: Duration,
        deadline: Instant,
        // Set anew only when it goes off, so that a write costs no more than a look at the clock.
        alarm: Pin<Box<Sleep>>,
    }
}

impl<T> Connection<T> {
    pub(crate) fn new(stream: T, patience: Duration) -> Self {
        let deadline = Instant::now() + patience;
        Self { stream, patience, deadline, alarm: Box::pin(sleep_until(deadline)) }
    }

    pub(crate) fn get_ref(&self) -> &T {
        &self.stream
    }

    /// An error once the deadline has passed; otherwise the task is woken then.
    fn check_deadline(self: Pin<&mut Self>, context: &mut Context<'_>) -> io::Result<()> {
        let this = self.project();
        while this.alarm.as_mut().poll(context).is_ready() {
            if *this.deadline <= this.alarm.deadline() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            this.alarm.as_mut().reset(*this.deadline);
        }
        Ok(())
    }
}

impl<T: AsyncRead> AsyncRead for Connection<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_mut().check_deadline(context)?;
        self.project().stream.poll_read(context, buffer)
    }
}

impl<T: AsyncWrite> AsyncWrite for Connection<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.as_mut().check_deadline(context)?;
        let this = self.project();
        let written = this.stream.poll_write(context, bytes);
        if let Poll::Ready(Ok(1..)) = written {
            *this.deadline = Instant::now() + *this.patience;
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);
    const NEARLY: Duration = Duration::from_secs(9);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_never_answered_is_cut_off_however_much_it_sends() {
        let (mut client, server) = duplex(64);
        let mut connection = Connection::new(server, PATIENCE);
        let start = Instant::now();

        let sending = tokio::spawn(async move {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let error = loop {
            match connection.read_u8().await {
                Ok(byte) => assert_eq!(byte, b'x'),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), PATIENCE);
        drop(connection);
        sending.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn every_answer_gives_the_client_as_much_time_again() {
        let (mut client, server) = duplex(64);
        let mut connection = Connection::new(server, PATIENCE);

        for _ in 0..5 {
            tokio::time::sleep(NEARLY).await;
            connection.write_all(b"answer").await.unwrap();
            client.read_exact(&mut [0; 6]).await.unwrap();
        }
        let start = Instant::now();
        assert_eq!(connection.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_take_its_answer_is_cut_off() {
        let (_client, server) = duplex(4);
        let mut connection = Connection::new(server, PATIENCE);
        let start = Instant::now();

        let error = connection.write_all(b"more than fits").await.unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), PATIENCE);
    }
}
