//! A process that was started, and its output.

use std::{
    io::{BufRead, BufReader, Read},
    iter, mem,
    net::SocketAddr,
    process::{Child, Command},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel},
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::{HttpClient, sample};
use serde_json::Value;
use tempfile::TempDir;

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

/// A process that has exited.
#[derive(Debug)]
pub(crate) struct Exited {
    /// `None` if a signal ended the process.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
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
            let Ok(line) = self
                .receiver
                .recv_timeout(DEADLINE.saturating_sub(start.elapsed()))
            else {
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
    pub(crate) fn wait(mut self) -> Exited {
        let start = Instant::now();
        loop {
            match self
                .receiver
                .recv_timeout(DEADLINE.saturating_sub(start.elapsed()))
            {
                Ok(line) => self.lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the process does not exit: {:#?}", self.lines)
                }
            }
        }
        let code = self.child.wait().expect("an exit status").code();
        let (stderr, stdout): (Vec<_>, Vec<_>) = mem::take(&mut self.lines)
            .into_iter()
            .partition(|line| line.0);
        let [stdout, stderr] =
            [stdout, stderr].map(|lines| lines.into_iter().map(|line| line.1).collect());
        Exited {
            code,
            stdout,
            stderr,
        }
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
    sample(HttpClient::new(management).get("/metrics").text(), series)
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
        assert!(
            !stderr.is_empty() && texts.iter().all(|text| stderr.contains(text)),
            "{texts:?}: {self:?}"
        );
        self
    }

    /// Asserts this exit code, and one line on standard error with each of these texts.
    #[track_caller]
    pub(crate) fn assert_error(&self, code: i32, texts: &[&str]) -> &Self {
        assert_eq!((self.code, self.stderr.len()), (Some(code), 1), "{self:?}");
        assert!(
            texts.iter().all(|text| self.stderr[0].contains(text)),
            "{texts:?}: {self:?}"
        );
        self
    }

    /// Standard output and standard error.
    pub(crate) fn output(&self) -> String {
        [&self.stdout[..], &self.stderr[..]].concat().join("\n")
    }

    /// Events of the log. Fails if a line of standard output is not JSON.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let event = |line: &String| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.stdout.iter().map(event).collect()
    }

    /// The lines of requests to the API.
    #[track_caller]
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.events()
            .into_iter()
            .filter(|event| event["message"] == "request")
            .collect()
    }
}
