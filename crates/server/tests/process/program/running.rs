//! A process that was started, and its output.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    iter, mem,
    net::SocketAddr,
    process::{Child, Command},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel},
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::{HttpClient, sample, wait_until};
use serde_json::Value;
use tempfile::TempDir;

use super::{Exited, TOKEN};

/// Limit of a wait, after which the test fails. It is long enough for a loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// A line of standard error, if the flag is set, or of standard output.
type Line = (bool, String);

/// A running process. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    receiver: Receiver<Line>,
    lines: Vec<Line>,
    _directory: TempDir,
}

fn forward(pipe: impl Read + Send + 'static, sender: Sender<Line>, is_error: bool) {
    thread::spawn(move || {
        for text in BufReader::new(pipe).lines().map_while(Result::ok) {
            // Fails after the test has ended.
            let _ = sender.send((is_error, text));
        }
    });
}

/// The lines of a pipe or a terminal, of which no more is read than the caller takes.
pub(crate) fn lines(pipe: impl Read + Send + 'static) -> impl Iterator<Item = String> {
    let (sender, receiver) = sync_channel(0);
    let mut lines = BufReader::new(pipe).lines().map_while(Result::ok);
    thread::spawn(move || lines.try_for_each(|line| sender.send(line)));
    iter::from_fn(move || receiver.recv_timeout(DEADLINE).ok())
}

impl Running {
    pub(super) fn new(mut child: Child, directory: TempDir) -> Self {
        let (sender, receiver) = channel();
        if let Some(stdout) = child.stdout.take() {
            forward(stdout, sender.clone(), false);
        }
        if let Some(stderr) = child.stderr.take() {
            forward(stderr, sender, true);
        }
        Self {
            child,
            receiver,
            lines: Vec::new(),
            _directory: directory,
        }
    }

    /// Waits for a line of output for which `choose` returns a value, and returns that value.
    #[track_caller]
    pub(crate) fn wait_for<T>(&mut self, choose: impl Fn(&str) -> Option<T>) -> T {
        if let Some(chosen) = self.lines.iter().find_map(|(_, text)| choose(text)) {
            return chosen;
        }
        self.wait_for_next(choose)
    }

    /// The same for a line that no earlier call has read.
    #[track_caller]
    pub(crate) fn wait_for_next<T>(&mut self, choose: impl Fn(&str) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            let left = DEADLINE.saturating_sub(start.elapsed());
            let Ok(line) = self.receiver.recv_timeout(left) else {
                panic!("the line is missing: {:#?}", self.lines);
            };
            let chosen = choose(&line.1);
            self.lines.push(line);
            if let Some(chosen) = chosen {
                return chosen;
            }
        }
    }

    /// Waits for a line with this text, and returns what follows the text.
    #[track_caller]
    pub(crate) fn wait_for_text(&mut self, text: &str) -> String {
        self.wait_for(|line| line.split_once(text).map(|(_, rest)| rest.to_owned()))
    }

    /// Waits for an event of the log.
    #[track_caller]
    pub(crate) fn wait_for_log(&mut self, matches: impl Fn(&Value) -> bool) -> Value {
        self.wait_for(|text| serde_json::from_str(text).ok().filter(&matches))
    }

    /// Waits for a warning of the log whose message has this text.
    #[track_caller]
    pub(crate) fn wait_for_warning(&mut self, text: &str) -> Value {
        self.wait_for_log(|event| {
            event["level"] == "WARN" && event["message"].to_string().contains(text)
        })
    }

    #[track_caller]
    pub(crate) fn wait_for_event(&mut self, message: &str) -> Value {
        self.wait_for_log(|event| event["message"] == message)
    }

    /// Address of the API.
    #[track_caller]
    pub(crate) fn address(&mut self) -> SocketAddr {
        self.listening("address")
    }

    #[track_caller]
    pub(crate) fn management_address(&mut self) -> SocketAddr {
        self.listening("management")
    }

    #[track_caller]
    fn listening(&mut self, field: &str) -> SocketAddr {
        self.wait_for_event("listening")[field]
            .as_str()
            .expect("an address")
            .parse()
            .expect("an address")
    }

    /// A client of the API with the key [`TOKEN`].
    #[track_caller]
    pub(crate) fn client(&mut self) -> HttpClient {
        HttpClient::new(self.address()).with_token(TOKEN)
    }

    /// A client of the management listener.
    #[track_caller]
    pub(crate) fn management(&mut self) -> HttpClient {
        HttpClient::new(self.management_address())
    }

    /// Waits until the program is ready. On a busy machine, a probe can take too long.
    #[track_caller]
    pub(crate) fn wait_until_ready(&mut self) {
        let management = self.management();
        wait_until(|| management.get("/ready").status == 200);
    }

    /// The text of a file that the system has about the process.
    #[track_caller]
    pub(crate) fn proc(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.pid())).expect("it runs")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal: `TERM`, `INT`, `HUP`, …
    #[track_caller]
    pub(crate) fn signal(&self, name: &str) {
        // The `kill` of the shell: not every machine has a program of that name.
        let status = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.child.id())])
            .status();
        assert!(status.expect("the shell runs").success());
    }

    /// Sends SIGTERM and waits for the exit.
    #[track_caller]
    pub(crate) fn terminate(self) -> Exited {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for the end of the output and for the exit.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Exited {
        let start = Instant::now();
        loop {
            let left = DEADLINE.saturating_sub(start.elapsed());
            match self.receiver.recv_timeout(left) {
                Ok(line) => self.lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the process does not exit: {:#?}", self.lines)
                }
            }
        }
        let code = self.child.wait().expect("an exit status").code();
        let mut exited = Exited {
            code,
            ..Exited::default()
        };
        for (is_error, text) in mem::take(&mut self.lines) {
            if is_error {
                exited.stderr.push(text);
            } else {
                exited.stdout.push(text);
            }
        }
        exited
    }
}

impl Drop for Running {
    #[expect(clippy::print_stderr, reason = "the output of a failed test")]
    fn drop(&mut self) {
        if thread::panicking() {
            self.lines.extend(self.receiver.try_iter());
            eprintln!("output of process {}: {:#?}", self.pid(), self.lines);
        }
        // Fails if the process has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the value of a series of the metrics at this address, which is a whole number.
#[track_caller]
pub(crate) fn metric(management: SocketAddr, series: &str) -> usize {
    sample(HttpClient::new(management).get("/metrics").text(), series)
}
