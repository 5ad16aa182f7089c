use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::bail;
use tokio::{
    runtime::{Handle, Runtime},
    task::spawn_blocking,
};

use crate::{shutdown::Signals, stderr};

/// Says whether a signal has requested the end of the command.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct StopRequest(Arc<AtomicBool>);

impl StopRequest {
    pub(in crate::cli) fn is_made(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn make(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a command on a runtime of its own. The first SIGTERM or SIGINT makes the stop request, a second one ends the
/// command at once, even if it waits for a read of standard input.
///
/// # Errors
/// The error of the command.
pub(in crate::cli) fn run<F>(command: impl FnOnce(StopRequest) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let runtime = Runtime::new()?;
    let result = runtime.block_on(async {
        let signals = Signals::listen()?;
        let stop = StopRequest::default();
        // On a thread of its own: while it waits for a file, connections and signals go on.
        let (command, handle) = (command(stop.clone()), Handle::current());
        let mut command = spawn_blocking(move || handle.block_on(command));
        tokio::select! {
            result = &mut command => return result?,
            _ = signals.first() => {}
        }
        stop.make();
        stderr::write_line("interrupted: the command ends after the current batch; a second signal ends it at once");
        tokio::select! {
            result = command => result?,
            () = signals.second() => bail!("a second signal arrived: the command ended at once"),
        }
    });
    // A thread that is blocked is left behind.
    runtime.shutdown_background();
    result
}
