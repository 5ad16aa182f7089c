use std::{
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    time::{Sleep, sleep},
};

/// Input is drained for this long.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of bytes that are drained.
const MAX_BYTES: usize = 1024 * 1024;

/// Reads and drops input after the final response, so that closing does not reset the connection (RFC 9112, section
/// 9.6).
pub(super) struct Drain {
    timer: Pin<Box<Sleep>>,
    bytes: usize,
}

impl Drain {
    pub(super) fn new() -> Self {
        Self { timer: Box::pin(sleep(TIMEOUT)), bytes: 0 }
    }

    /// Resolves when the client closes, or the timeout or the maximum is reached.
    pub(super) fn poll(&mut self, stream: &mut (impl AsyncRead + Unpin), context: &mut Context<'_>) -> Poll<()> {
        while self.bytes < MAX_BYTES {
            let mut bytes = [MaybeUninit::uninit(); 4096];
            let mut buffer = ReadBuf::uninit(&mut bytes);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => self.bytes += buffer.filled().len(),
                Poll::Ready(_) => break,
                Poll::Pending => return self.timer.as_mut().poll(context),
            }
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[tokio::test]
    async fn input_is_drained_up_to_the_maximum() {
        let sent = vec![0; 2 * MAX_BYTES];
        let mut input = &sent[..];
        let drained = Drain::new().poll(&mut input, &mut Context::from_waker(Waker::noop()));
        assert!(drained.is_ready());
        assert_eq!(sent.len() - input.len(), 1_048_576);
    }
}
