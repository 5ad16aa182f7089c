//! A process that was started, and its output.

use std::{
    io::{BufRead, BufReader, Read},
    mem,
    net::SocketAddr,
    process::{Child, Command},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::HttpClient;
use serde_json::Value;
use tempfile::TempDir;

/// Limit of a wait, after which the test fails. It is long enough for a loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Limit of a command that runs until it has done its work.
pub(super) const COMMAND_DEADLINE: Duration = Duration::from_secs(90);

/// A line of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Out(String),
    Err(String),
}

/// A running process. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    receiver: Receiver<Line>,
    lines: Vec<Line>,
    _directory: TempDir,
}

/// A process that has exited.
#[derive(Debug)]
pub(crate) struct Exited {
    /// `None` if a signal ended the process.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
}

fn forward(pipe: impl Read + Send + 'static, sender: Sender<Line>, line: fn(String) -> Line) {
    thread::spawn(move || {
        for text in BufReader::new(pipe).lines().map_while(Result::ok) {
            // Fails after the test has ended.
            let _ = sender.send(line(text));
        }
    });
}

impl Running {
    pub(super) fn new(mut child: Child, directory: TempDir) -> Self {
        let (sender, receiver) = channel();
        if let Some(stdout) = child.stdout.take() {
            forward(stdout, sender.clone(), Line::Out);
        }
        if let Some(stderr) = child.stderr.take() {
            forward(stderr, sender, Line::Err);
        }
        Self { child, receiver, lines: Vec::new(), _directory: directory }
    }

    /// Waits for a line for which `choose` returns a value, and returns that value.
    #[track_caller]
    pub(crate) fn wait_for<T>(&mut self, choose: impl Fn(&Line) -> Option<T>) -> T {
        if let Some(chosen) = self.lines.iter().find_map(&choose) {
            return chosen;
        }
        let start = Instant::now();
        loop {
            let Ok(line) = self.receiver.recv_timeout(DEADLINE.saturating_sub(start.elapsed())) else {
                panic!("the line is missing: {:#?}", self.lines);
            };
            self.lines.push(line);
            if let Some(chosen) = self.lines.last().and_then(&choose) {
                return chosen;
            }
        }
    }

    /// Waits for an event of the log.
    #[track_caller]
    pub(crate) fn wait_for_log(&mut self, matches: impl Fn(&Value) -> bool) -> Value {
        self.wait_for(|line| match line {
            Line::Out(text) => serde_json::from_str(text).ok().filter(&matches),
            Line::Err(_) => None,
        })
    }

    #[track_caller]
    pub(crate) fn wait_for_event(&mut self, message: &str) -> Value {
        self.wait_for_log(|event| event["message"] == message)
    }

    /// Waits for an error with a reason that a crate logs, and returns the reason.
    #[track_caller]
    pub(crate) fn wait_for_reason(&mut self, module: &str) -> String {
        let event = self.wait_for_log(|event| {
            event["target"].as_str().is_some_and(|target| target.starts_with(module))
                && event["level"] == "ERROR"
                && event["reason"].is_string()
        });
        event["reason"].as_str().unwrap_or_default().to_owned()
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
        self.wait_for_event("listening")[field].as_str().expect("an address").parse().expect("an address")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal: `TERM`, `INT` or `HUP`.
    #[track_caller]
    pub(crate) fn signal(&self, name: &str) {
        // The `kill` of the shell: not every machine has a program of that name.
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(status.expect("the shell runs").success());
    }

    /// Kills the process and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("an exit status");
    }

    /// Sends SIGTERM and waits for the exit.
    #[track_caller]
    pub(crate) fn terminate(self) -> Exited {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for the end of the output and for the exit.
    #[track_caller]
    pub(crate) fn wait(self) -> Exited {
        self.wait_within(DEADLINE)
    }

    #[track_caller]
    pub(super) fn wait_within(mut self, deadline: Duration) -> Exited {
        let start = Instant::now();
        loop {
            match self.receiver.recv_timeout(deadline.saturating_sub(start.elapsed())) {
                Ok(line) => self.lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the process does not exit: {:#?}", self.lines),
            }
        }
        let code = loop {
            if let Some(status) = self.child.try_wait().expect("an exit status") {
                break status.code();
            }
            assert!(start.elapsed() < deadline, "the process does not exit: {:#?}", self.lines);
        };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        for line in mem::take(&mut self.lines) {
            match line {
                Line::Out(text) => stdout.push(text),
                Line::Err(text) => stderr.push(text),
            }
        }
        Exited { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if the process has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the value of a series of the metrics at this address, which is a whole number.
#[track_caller]
pub(crate) fn metric(management: SocketAddr, series: &str) -> usize {
    let response = HttpClient::new(management).get("/metrics");
    let value = response.text().lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{series}: {}", response.text())).parse().expect("a whole number")
}

impl Exited {
    /// Asserts a success without a line on standard error.
    #[track_caller]
    pub(crate) fn assert_success(&self) -> &Self {
        assert_eq!((self.code, &self.stderr), (Some(0), &vec![]), "{self:?}");
        self
    }

    /// Asserts this exit code, nothing on standard output, and each of these texts on standard error.
    #[track_caller]
    pub(crate) fn assert_refused(&self, code: i32, texts: &[&str]) -> &Self {
        assert_eq!((self.code, &self.stdout), (Some(code), &vec![]), "{self:?}");
        let stderr = self.stderr.join("\n");
        assert!(!stderr.is_empty() && texts.iter().all(|text| stderr.contains(text)), "{texts:?}: {self:?}");
        self
    }

    /// Asserts this exit code, and one line on standard error with each of these texts.
    #[track_caller]
    pub(crate) fn assert_error(&self, code: i32, texts: &[&str]) -> &Self {
        assert_eq!((self.code, self.stderr.len()), (Some(code), 1), "{self:?}");
        assert!(texts.iter().all(|text| self.stderr[0].contains(text)), "{texts:?}: {self:?}");
        self
    }

    /// Standard output and standard error.
    pub(crate) fn output(&self) -> String {
        [&self.stdout[..], &self.stderr[..]].concat().join("\n")
    }

    /// Events of the log. Fails if a line of standard output is not JSON.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let event = |line: &String| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.stdout.iter().map(event).collect()
    }
}
