use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::ensure;

/// Log on standard error that records whether a line was lost.
#[derive(Clone, Default)]
pub(crate) struct CommandLog(Arc<AtomicBool>);

impl CommandLog {
    /// Fails if a line could not be written.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let failed = self.0.load(Ordering::Relaxed);
        ensure!(!failed, "the command succeeded, but its log could not be written to standard error");
        Ok(())
    }
}

impl Write for CommandLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(bytes).inspect_err(|_| self.0.store(true, Ordering::Relaxed))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
