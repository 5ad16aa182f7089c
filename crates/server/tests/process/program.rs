//! The program as a process with its own working directory and environment.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    mem,
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use animal_store_test_servers::RedisSpace;
use serde_json::Value;
use tempfile::TempDir;

/// Limit of a wait, after which the test fails. It is long enough for a loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
/// The API key of [`Program::with_key`].
pub(crate) const TOKEN: &str = "process-token-1";

/// A program to be run.
pub(crate) struct Program {
    command: Command,
    directory: TempDir,
    stdin: String,
}

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

impl Program {
    /// A program without any configuration.
    pub(crate) fn bare() -> Self {
        let directory = TempDir::new().expect("a working directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_animal-store"));
        command.env_clear().current_dir(directory.path());
        Self { command, directory, stdin: String::new() }
    }

    /// A program on free ports.
    pub(crate) fn new() -> Self {
        let program = Self::bare();
        program.env("ANIMAL_STORE_HTTP__LISTEN", "127.0.0.1:0").env("ANIMAL_STORE_MANAGEMENT__LISTEN", "127.0.0.1:0")
    }

    /// A program on free ports, with the API key [`TOKEN`].
    pub(crate) fn with_key() -> Self {
        Self::new().env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", TOKEN)
    }

    /// The same as [`Program::with_key`], with pets in PostgreSQL.
    pub(crate) fn with_postgres(url: &str) -> Self {
        Self::with_key()
            .env("ANIMAL_STORE_STORAGE__BACKEND", "postgres")
            .env("ANIMAL_STORE_STORAGE__POSTGRES__URL", url)
    }

    /// A program on free ports, with API keys in Redis.
    pub(crate) fn with_redis_url(url: &str) -> Self {
        Self::new().env("ANIMAL_STORE_KEYS__BACKEND", "redis").env("ANIMAL_STORE_KEYS__REDIS__URL", url)
    }

    pub(crate) fn with_redis(space: &RedisSpace) -> Self {
        Self::with_redis_url(space.url()).env("ANIMAL_STORE_KEYS__REDIS__PREFIX", space.prefix())
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    /// Writes a file into the working directory.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.directory.path().join(name), text).expect("a file");
        self
    }

    /// Sets the content of standard input.
    pub(crate) fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    pub(crate) fn start(mut self) -> Running {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        // A program that does not read it may have exited.
        let _ = child.stdin.take().expect("standard input").write_all(self.stdin.as_bytes());
        let (sender, receiver) = channel();
        forward(child.stdout.take().expect("standard output"), sender.clone(), Line::Out);
        forward(child.stderr.take().expect("standard error"), sender, Line::Err);
        Running { child, receiver, lines: Vec::new(), _directory: self.directory }
    }

    /// Runs the program until it exits.
    #[track_caller]
    pub(crate) fn run(self) -> Exited {
        self.start().wait()
    }
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

    /// Sends a signal: `TERM` or `INT`.
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

    /// Waits for the exit, which is the end of the output.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Exited {
        let start = Instant::now();
        loop {
            match self.receiver.recv_timeout(DEADLINE.saturating_sub(start.elapsed())) {
                Ok(line) => self.lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the process does not exit: {:#?}", self.lines),
            }
        }
        let code = self.child.wait().expect("an exit status").code();
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

impl Exited {
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
