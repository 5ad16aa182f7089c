use std::time::Duration;

use super::{
    key::{Key, keys},
    values::{Values, duration, optional},
};

keys! {
    TIMEOUT: new("shutdown.timeout", "30s",
        "Time from the first signal to the end of the process. Requests that are in flight until then are cut off, \
         and the exit code is 1. The last quarter of it, at most half a second, is reserved for the log.");
    DRAIN_DELAY: new("shutdown.drain_delay", "",
        "Time after SIGTERM for which the service still accepts connections, so that load balancers can notice that \
         `/ready` is 503. At most half of `shutdown.timeout`. Empty: `5s`, or half of `shutdown.timeout` if that is \
         shorter; `0s` with a socket that systemd passed, because connections wait in it for the next process.");
    IDLE_GRACE: new("shutdown.idle_grace", "1s",
        "Time for which a connection has to be idle before the shutdown closes it. A connection that had a response \
         with `Connection: close` is closed sooner.");
}

/// Timeouts of the shutdown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShutdownConfig {
    /// From the first signal to the end of the process.
    pub(crate) timeout: Duration,
    /// `None`: not set.
    drain_delay: Option<Duration>,
    pub(crate) idle_grace: Duration,
}

const HOUR: Duration = Duration::from_hours(1);
const DEFAULT_DRAIN_DELAY: Duration = Duration::from_secs(5);

impl ShutdownConfig {
    /// Time for the last lines of the log, if `shutdown.timeout` is long enough.
    pub(crate) const LOG_TIMEOUT: Duration = Duration::from_millis(500);

    pub(super) fn read(values: &mut Values) -> Self {
        let timeout = values.read(&TIMEOUT, duration(Duration::from_millis(1)..=HOUR));
        let drain_delay = values.read(&DRAIN_DELAY, optional(duration(Duration::ZERO..=HOUR)));
        let fits = drain_delay.is_none_or(|delay| delay <= timeout / 2);
        values.require(fits, &[&DRAIN_DELAY, &TIMEOUT], "must be at most half of shutdown.timeout");
        Self { timeout, drain_delay, idle_grace: values.read(&IDLE_GRACE, duration(Duration::ZERO..=HOUR)) }
    }

    /// Time for which connections are accepted after SIGTERM. With an inherited socket, no connection is refused.
    pub(crate) fn drain_delay(&self, socket_is_inherited: bool) -> Duration {
        let default = if socket_is_inherited { Duration::ZERO } else { DEFAULT_DRAIN_DELAY.min(self.timeout / 2) };
        self.drain_delay.unwrap_or(default)
    }

    /// Time from the first signal after which requests in flight are cut off. The rest of the timeout is for the log.
    pub(crate) fn requests_timeout(&self) -> Duration {
        self.timeout.saturating_sub(self.log_timeout())
    }

    /// Time for the log after everything else has ended.
    pub(crate) fn log_timeout(&self) -> Duration {
        Self::LOG_TIMEOUT.min(self.timeout / 4)
    }
}
