//! The thread of actix that accepts connections, and whether it has paused.
//!
//! actix reports a pause before it has taken effect. If connections go on arriving at a socket, the stop therefore
//! waits until the socket has left the set of descriptors of the acceptor (`epoll`), which the kernel shows in `/proc`.
//! For a moment after that, the acceptor can still accept connections of its last events.

use std::{
    fs,
    net::TcpListener,
    os::fd::{AsRawFd, RawFd},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::{sleep, timeout};

/// Timeout for a pause. Under connections that never end, actix pauses at the first moment at which none waits.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval in which the set of the acceptor is read.
const INTERVAL: Duration = Duration::from_millis(5);

/// The acceptor of a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acceptor(RawFd);

/// The sets of descriptors that contained the socket.
#[derive(Debug)]
pub(crate) struct DescriptorSets {
    socket: Acceptor,
    sets: Vec<PathBuf>,
}

impl Acceptor {
    /// The acceptor that gets this socket, and keeps its descriptor open.
    pub(crate) fn new(socket: &TcpListener) -> Self {
        Self(socket.as_raw_fd())
    }

    /// Returns the sets of descriptors of this process that contain the socket: that of the acceptor, until it pauses.
    pub(crate) fn sets(self) -> DescriptorSets {
        let descriptors = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let is_set = |target: PathBuf| target.as_os_str() == "anon_inode:[eventpoll]";
        let sets = descriptors
            .filter(|descriptor| fs::read_link(descriptor.path()).is_ok_and(is_set))
            .map(|descriptor| Path::new("/proc/self/fdinfo").join(descriptor.file_name()))
            .filter(|set| self.is_in(set));
        DescriptorSets { socket: self, sets: sets.collect() }
    }

    /// A set has a line for each descriptor: `tfd:        7 events: …`.
    fn is_in(self, set: &Path) -> bool {
        let descriptor = self.0.to_string();
        let lines = fs::read_to_string(set).unwrap_or_default();
        lines.lines().any(|line| {
            line.strip_prefix("tfd:").is_some_and(|line| line.split_whitespace().next() == Some(descriptor.as_str()))
        })
    }
}

impl DescriptorSets {
    /// Waits until the socket is in none of the sets, at most [`PAUSE_TIMEOUT`]. Without `/proc` there are no sets.
    pub(crate) async fn left(self) {
        let left = async {
            while self.sets.iter().any(|set| self.socket.is_in(set)) {
                sleep(INTERVAL).await;
            }
        };
        if timeout(PAUSE_TIMEOUT, left).await.is_err() {
            tracing::debug!("the acceptor has not paused: connections that it accepts may be reset");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::ready, pin::pin};

    use tokio::{net::TcpListener, time::Instant};

    use super::*;

    #[tokio::test]
    async fn a_pause_is_noticed_when_the_socket_leaves_its_set() {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let sets = Acceptor(socket.as_raw_fd()).sets();
        assert_ne!(sets.sets, Vec::<PathBuf>::new());

        let mut left = pin!(sets.left());
        tokio::select! {
            biased;
            () = &mut left => panic!("the socket is in the set"),
            () = ready(()) => drop(socket),
        }
        timeout(PAUSE_TIMEOUT / 2, left).await.expect("a pause");
    }

    #[tokio::test(start_paused = true)]
    async fn an_acceptor_that_does_not_pause_is_awaited_for_the_timeout() {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let start = Instant::now();
        Acceptor(socket.as_raw_fd()).sets().left().await;
        assert_eq!(start.elapsed(), PAUSE_TIMEOUT);
    }
}
