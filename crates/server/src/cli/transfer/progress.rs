use std::{
    io::{self, IsTerminal},
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use animal_store_app::{ImportObserver, TransferObserver, TransferPass};
use indicatif::{FormattedDuration, HumanCount, ProgressBar, ProgressStyle};

use super::StopRequest;
use crate::stderr;

/// Time between two lines of progress, if standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Number of refused lines that are reported one by one.
const MAX_REPORTED: u64 = 100;

/// Reports the progress of a command on standard error, in a bar on a terminal, otherwise in a line every few seconds,
/// and passes the request to stop on.
pub(in crate::cli) struct Progress {
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
    quiet: bool,
    /// Name of the current pass.
    pass: &'static str,
    total: Total,
    pass_started_at: Instant,
    next_line_at: Instant,
    refused: u64,
    stop: StopRequest,
}

/// The number of pets in a pass, from which the time that is left is estimated.
pub(in crate::cli) enum Total {
    Unknown,
    /// This number or a little less.
    Pets(u64),
    /// The pets in a file of this size in bytes.
    File {
        size: u64,
        read: Arc<AtomicU64>,
    },
}

impl Total {
    /// Estimates the total when this number of pets is done.
    fn estimate(&self, done: u64) -> Option<u64> {
        let total = match self {
            Self::Unknown => None,
            Self::Pets(pets) => Some(*pets),
            Self::File { size, read } => {
                let pets = (u128::from(done) * u128::from(*size)).checked_div(read.load(Ordering::Relaxed).into());
                pets.and_then(|pets| u64::try_from(pets).ok())
            }
        };
        total.map(|total| total.max(done))
    }
}

impl Progress {
    pub(in crate::cli) fn new(quiet: bool, total: Total, stop: StopRequest) -> Self {
        let bar = (!quiet && io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("[{bar:30}] {msg}").expect("the template is valid");
            ProgressBar::new(0).with_style(style)
        });
        let now = Instant::now();
        let next_line_at = now + LINE_INTERVAL;
        Self { bar, quiet, pass: "", total, pass_started_at: now, next_line_at, refused: 0, stop }
    }

    /// Ends the report, before the result is printed.
    pub(in crate::cli) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        if let more @ 1.. = self.refused.saturating_sub(MAX_REPORTED) {
            stderr::write_line(&format!("{more} more lines were refused"));
        }
    }

    fn show(&mut self, done: u64) {
        let now = Instant::now();
        let total = self.total.estimate(done);
        let text = || format!("{}: {}", self.pass, text(done, total, now - self.pass_started_at));
        if let Some(bar) = &self.bar {
            bar.set_length(total.unwrap_or(done));
            bar.set_position(done);
            bar.set_message(text());
        } else if !self.quiet && now >= self.next_line_at {
            stderr::write_line(&text());
            self.next_line_at = now + LINE_INTERVAL;
        }
    }
}

impl TransferObserver for Progress {
    fn started(&mut self, pass: TransferPass, pets: Option<u64>) {
        self.pass = match pass {
            TransferPass::Check => "check",
            TransferPass::Transfer => "transfer",
            TransferPass::Verification => "verification",
        };
        if let Some(pets) = pets {
            self.total = Total::Pets(pets);
        }
        self.pass_started_at = Instant::now();
    }

    fn advanced(&mut self, pets: u64) -> ControlFlow<()> {
        self.show(pets);
        if self.stop.is_made() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl ImportObserver for Progress {
    fn refused(&mut self, line: u64, reason: &str) {
        self.refused += 1;
        if self.refused > MAX_REPORTED {
            return;
        }
        let report = || stderr::write_line(&format!("line {line}: {reason}"));
        match &self.bar {
            Some(bar) => bar.suspend(report),
            None => report(),
        }
    }
}

/// Describes the progress: the number of pets, the rate, and the time left.
fn text(done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let rate = u128::from(done) * 1000 / elapsed.as_millis().max(1);
    let rate = u64::try_from(rate).unwrap_or(u64::MAX);
    let count = HumanCount(done);
    match total {
        Some(total) if rate > 0 => {
            let left = FormattedDuration(Duration::from_secs((total - done) / rate));
            format!("{count} of about {} pets, {} pets/s, {left} left", HumanCount(total), HumanCount(rate))
        }
        _ => format!("{count} pets, {} pets/s", HumanCount(rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_rate_and_the_time_left() {
        let elapsed = Duration::from_secs(10);
        assert_eq!(text(1_000_000, None, elapsed), "1,000,000 pets, 100,000 pets/s");
        let expected = "1,000,000 of about 10,000,000 pets, 100,000 pets/s, 00:01:30 left";
        assert_eq!(text(1_000_000, Some(10_000_000), elapsed), expected);
        assert_eq!(text(0, Some(10), Duration::ZERO), "0 pets, 0 pets/s");
    }

    fn progress(quiet: bool, next_line_at: Instant) -> Progress {
        let mut progress = Progress::new(quiet, Total::Unknown, StopRequest::default());
        (progress.bar, progress.next_line_at) = (None, next_line_at);
        progress
    }

    #[test]
    fn a_line_is_printed_every_few_seconds_unless_the_command_is_quiet() {
        let now = Instant::now();
        for (quiet, due, printed) in [(false, now, true), (false, now + LINE_INTERVAL, false), (true, now, false)] {
            let mut progress = progress(quiet, due);
            assert!(progress.advanced(1).is_continue());
            let (unchanged, later) = (progress.next_line_at == due, progress.next_line_at >= due + LINE_INTERVAL);
            assert_eq!((unchanged, later), (!printed, printed), "{quiet}");
        }
    }

    #[test]
    fn a_pass_has_its_name_and_its_number_of_pets() {
        let mut progress = progress(true, Instant::now());
        progress.started(TransferPass::Verification, Some(7));
        assert_eq!((progress.pass, progress.total.estimate(1)), ("verification", Some(7)));
    }

    #[test]
    fn the_total_of_a_file_follows_from_the_bytes_that_are_read() {
        let read = Arc::new(AtomicU64::new(0));
        let total = Total::File { size: 1000, read: Arc::clone(&read) };
        assert_eq!(total.estimate(0), None);
        read.store(250, Ordering::Relaxed);
        assert_eq!(total.estimate(5), Some(20));
        read.store(1000, Ordering::Relaxed);
        assert_eq!(total.estimate(21), Some(21));
    }
}
