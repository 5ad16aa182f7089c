//! Closes a connection if nothing was written to it within the timeout.
//!
//! actix has a timeout for the head of a connection's first request and for idle connections. This stream covers the
//! rest with one rule: reads, writes, flushes and closing fail when the timeout has passed since the last written byte.

use std::{
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::unconstrained,
    time::{Instant, Sleep, sleep_until},
};

/// A stream that fails with [`TimedOut`](io::ErrorKind::TimedOut) when nothing was written to it for the timeout.
pub(crate) struct WriteTimeoutStream<T> {
    stream: T,
    timeout: Duration,
    deadline: Instant,
    // Is reset only when it elapses, so that a write costs one reading of the clock.
    timer: Pin<Box<Sleep>>,
    /// The task that the timer wakes. Registering it with each read and write would cost more than the comparison.
    task: Option<Waker>,
}

impl<T> WriteTimeoutStream<T> {
    pub(crate) fn new(stream: T, timeout: Duration) -> Self {
        let deadline = Instant::now() + timeout;
        Self { stream, timeout, deadline, timer: Box::pin(sleep_until(deadline)), task: None }
    }

    /// Time of the last write, or of the connection.
    pub(super) fn last_write(&self) -> Instant {
        self.deadline - self.timeout
    }

    /// Fails if the deadline has passed. Otherwise the task is woken at the deadline.
    fn check_deadline(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let will_wake = self.task.as_ref().is_some_and(|task| task.will_wake(context.waker()));
        if will_wake && !self.timer.is_elapsed() {
            return Ok(());
        }
        self.task = Some(context.waker().clone());
        // A task that has used up its budget would not be registered.
        while pin!(unconstrained(self.timer.as_mut())).poll(context).is_ready() {
            if self.deadline <= self.timer.deadline() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.timer.as_mut().reset(self.deadline);
        }
        Ok(())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_deadline(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check_deadline(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(1..)) = written {
            self.deadline = Instant::now() + self.timeout;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Pending => {
                self.check_deadline(context).map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending)
            }
            flushed @ Poll::Ready(_) => flushed,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(context) {
            Poll::Pending => {
                self.check_deadline(context).map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending)
            }
            closed @ Poll::Ready(_) => closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        task::coop::consume_budget,
        time::timeout,
    };

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_and_gets_no_response_is_disconnected_after_the_timeout() {
        let (mut client, server) = duplex(64);
        let mut stream = WriteTimeoutStream::new(server, TIMEOUT);
        let start = Instant::now();

        let sending = tokio::spawn(async move {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let error = loop {
            match stream.read_u8().await {
                Ok(byte) => assert_eq!(byte, b'x'),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), TIMEOUT);
        drop(stream);
        sending.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn every_write_restarts_the_timeout() {
        let (mut client, server) = duplex(64);
        let mut stream = WriteTimeoutStream::new(server, TIMEOUT);

        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(9)).await;
            stream.write_all(b"12 456").await.unwrap();
            client.read_exact(&mut [0; 6]).await.unwrap();
        }
        let start = Instant::now();
        assert_eq!(stream.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_its_response_is_disconnected_after_the_timeout() {
        let (_client, server) = duplex(4);
        let mut stream = WriteTimeoutStream::new(server, TIMEOUT);
        let start = Instant::now();

        let error = stream.write_all(b"more than fits").await.unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed(), TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn the_timeout_holds_if_the_task_has_used_up_its_budget() {
        let (_client, server) = duplex(64);
        let mut stream = WriteTimeoutStream::new(server, TIMEOUT);
        let mut buffer = [0];

        let mut is_first = true;
        let reading = poll_fn(|context| {
            while is_first && pin!(consume_budget()).poll(context).is_ready() {}
            is_first = false;
            Pin::new(&mut stream).poll_read(context, &mut ReadBuf::new(&mut buffer))
        });
        let error = timeout(TIMEOUT * 2, reading).await.expect("the timeout").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
