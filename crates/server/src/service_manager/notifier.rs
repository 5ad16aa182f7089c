//! What the service manager is notified of (`sd_notify`): the start and the stop.
//! The notifications never delay the service: a thread of their own writes them, in order, and drops those for which a
//! manager that does not read leaves no room. Without `NOTIFY_SOCKET`, there is neither a thread nor a notification.

use std::{
    env, io,
    sync::mpsc::{SyncSender, sync_channel},
    thread,
    time::Duration,
};

use sd_notify::NotifyState;

/// Maximum number of messages that wait for a manager that does not read.
const MAX_UNSENT: usize = 64;

/// Time for the end of the process after `shutdown.timeout`.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// Sends the state of the service to the service manager, if there is one.
pub(crate) struct Notifier(Option<SyncSender<String>>);

impl Notifier {
    pub(super) fn start() -> io::Result<Self> {
        if env::var_os("NOTIFY_SOCKET").is_none_or(|path| path.is_empty()) {
            return Ok(Self(None));
        }
        let (sender, receiver) = sync_channel::<String>(MAX_UNSENT);
        thread::Builder::new().name("notifier".to_owned()).spawn(move || {
            for message in receiver {
                if let Err(error) = sd_notify::notify(&[NotifyState::Custom(&message)]) {
                    tracing::debug!(%error, "the service manager cannot be notified");
                }
            }
        })?;
        Ok(Self(Some(sender)))
    }

    pub(crate) const fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Reports the end of the start.
    pub(crate) fn ready(&self, status: &str) {
        self.send(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// Reports the first signal. The manager must not kill the process within `timeout`.
    pub(crate) fn stopping(&self, timeout: Duration) {
        let micros = u32::try_from((timeout + STOP_MARGIN).as_micros()).unwrap_or(u32::MAX);
        let extension = NotifyState::ExtendTimeoutUsec(micros);
        self.send(&[NotifyState::Stopping, extension, NotifyState::Status("shutting down")]);
    }

    fn send(&self, states: &[NotifyState<'_>]) {
        if let Some(sender) = &self.0 {
            let lines: Vec<_> = states.iter().map(ToString::to_string).collect();
            // Fails if the manager does not read: then it has no use for this message either.
            let _ = sender.try_send(lines.join("\n"));
        }
    }
}
