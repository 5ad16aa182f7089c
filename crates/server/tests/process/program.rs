//! The program as a process of its own, in a working directory of its own.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// Nothing that is waited for takes longer, however busy the machine is.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
/// The API key of [`Program::with_key`].
pub(crate) const TOKEN: &str = "process-token-1";

/// What is to be run.
pub(crate) struct Program {
    command: Command,
    directory: TempDir,
    stdin: String,
}

/// A line of its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Out(String),
    Err(String),
}

/// The process while it runs; killed when dropped.
pub(crate) struct Running {
    child: Child,
    receiver: Receiver<Line>,
    lines: Vec<Line>,
    _directory: TempDir,
}

/// What is left when it has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// None where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: Vec<String>,
}

impl Program {
    /// With an empty configuration, but for the ports: those are free ones.
    pub(crate) fn new() -> Self {
        let program = Self::bare();
        program.env("ANIMAL_STORE_HTTP__LISTEN", "127.0.0.1:0").env("ANIMAL_STORE_MANAGEMENT__LISTEN", "127.0.0.1:0")
    }

    /// The same with [`TOKEN`] as its API key.
    pub(crate) fn with_key() -> Self {
        Self::new().env("ANIMAL_STORE_KEYS__MEMORY__TOKENS", TOKEN)
    }

    /// The same with its API keys in Redis.
    pub(crate) fn with_redis(url: &str) -> Self {
        Self::new().env("ANIMAL_STORE_KEYS__BACKEND", "redis").env("ANIMAL_STORE_KEYS__REDIS__URL", url)
    }

    /// With nothing set at all.
    pub(crate) fn bare() -> Self {
        let directory = TempDir::new().expect("a working directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_animal-store"));
        command.env_clear().current_dir(directory.path());
        Self { command, directory, stdin: String::new() }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    /// With this file in its working directory.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.directory.path().join(name), text).expect("a file");
        self
    }

    /// With this to read on standard input.
    pub(crate) fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    pub(crate) fn start(mut self) -> Running {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program starts");
        // It may end without reading it.
        let _ = child.stdin.take().expect("standard input").write_all(self.stdin.as_bytes());
        let (sender, receiver) = channel();
        forward(child.stdout.take().expect("standard output"), sender.clone(), Line::Out);
        forward(child.stderr.take().expect("standard error"), sender, Line::Err);
        Running { child, receiver, lines: Vec::new(), _directory: self.directory }
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn run(self) -> Ended {
        self.start().wait()
    }
}

fn forward(pipe: impl Read + Send + 'static, sender: Sender<Line>, line: fn(String) -> Line) {
    thread::spawn(move || {
        for text in BufReader::new(pipe).lines().map_while(Result::ok) {
            // A test that has ended listens no more.
            let _ = sender.send(line(text));
        }
    });
}

impl Running {
    /// Waits for a line of which `choose` makes something.
    #[track_caller]
    pub(crate) fn wait_for<T>(&mut self, choose: impl Fn(&Line) -> Option<T>) -> T {
        if let Some(chosen) = self.lines.iter().find_map(&choose) {
            return chosen;
        }
        let start = Instant::now();
        loop {
            let Ok(line) = self.receiver.recv_timeout(DEADLINE.saturating_sub(start.elapsed())) else {
                panic!("the line does not come: {:#?}", self.lines);
            };
            self.lines.push(line);
            if let Some(chosen) = self.lines.last().and_then(&choose) {
                return chosen;
            }
        }
    }

    /// Waits for this line of the log.
    #[track_caller]
    pub(crate) fn wait_for_event(&mut self, message: &str) -> Value {
        self.wait_for(|line| match line {
            Line::Out(text) => serde_json::from_str(text).ok().filter(|event: &Value| event["message"] == message),
            Line::Err(_) => None,
        })
    }

    /// Where operators connect.
    #[track_caller]
    pub(crate) fn management_address(&mut self) -> SocketAddr {
        self.wait_for_event("listening")["management"].as_str().expect("an address").parse().expect("an address")
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where clients connect.
    #[track_caller]
    pub(crate) fn address(&mut self) -> SocketAddr {
        self.wait_for_event("listening")["address"].as_str().expect("an address").parse().expect("an address")
    }

    /// Sends it a signal: `TERM` or `INT`.
    #[track_caller]
    pub(crate) fn signal(&self, name: &str) {
        // The shell's own `kill`: a program of that name is not everywhere.
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(status.expect("the shell runs").success());
    }

    /// Kills it, whatever it is doing.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("an exit status");
    }

    /// Waits for its end, which is the end of its output.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended {
        let start = Instant::now();
        while let Some(left) = DEADLINE.checked_sub(start.elapsed()) {
            match self.receiver.recv_timeout(left) {
                Ok(line) => self.lines.push(line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return self.ended(),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => break,
            }
        }
        panic!("the process does not end: {:#?}", self.lines);
    }

    fn ended(&mut self) -> Ended {
        let code = self.child.wait().expect("an exit status").code();
        let text = |line: &Line| match line {
            Line::Out(text) => (Some(text.clone()), None),
            Line::Err(text) => (None, Some(text.clone())),
        };
        let (stdout, stderr): (Vec<_>, Vec<_>) = self.lines.iter().map(text).unzip();
        Ended { code, stdout: stdout.into_iter().flatten().collect(), stderr: stderr.into_iter().flatten().collect() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Everything it wrote.
    pub(crate) fn output(&self) -> String {
        [&self.stdout[..], &self.stderr[..]].concat().join("\n")
    }
}

/// Opens a connection and sends these bytes.
#[track_caller]
pub(crate) fn send(address: SocketAddr, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect_timeout(&address, DEADLINE).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    stream.write_all(bytes.as_bytes()).expect("the connection takes bytes");
    stream
}

/// What comes until the connection ends.
#[track_caller]
pub(crate) fn read_to_end(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the end of the connection");
    text
}

/// GET with this token; returns the whole answer.
#[track_caller]
pub(crate) fn get(address: SocketAddr, target: &str, token: &str) -> String {
    let head = format!("GET {target} HTTP/1.1\r\nHost: store.example\r\nConnection: close\r\n");
    read_to_end(send(address, &format!("{head}Authorization: Bearer {token}\r\n\r\n")))
}
