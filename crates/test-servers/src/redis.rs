use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Certificates, home::Home, port, watched::Watched};

/// A Redis server without persistence.
pub struct RedisServer {
    // Dropped before the folder is removed.
    process: Option<Watched>,
    home: Home,
    options: Vec<String>,
    port: u16,
    certificates: Option<Certificates>,
}

impl RedisServer {
    /// Starts a server with the default options.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a server with options as on its command line: `["--maxmemory", "1mb"]`.
    pub fn with(options: &[&str]) -> Self {
        Self::start_in(Home::for_this_user(), options, None)
    }

    /// Starts a server that accepts only TLS, and requires client certificates.
    pub fn with_tls() -> Self {
        let home = Home::for_this_user();
        let certificates = Certificates::make(home.path());
        let [certificate, key, authority] = [&certificates.server, &certificates.server_key, &certificates.authority]
            .map(|file| file.display().to_string());
        let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &authority];
        Self::start_in(home, &[&["--tls-auth-clients", "yes"], &files[..]].concat(), Some(certificates))
    }

    fn start_in(home: Home, options: &[&str], certificates: Option<Certificates>) -> Self {
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self { process: None, home, options, port: 0, certificates };
        port::start_on_free_port("redis-server", |port| {
            server.port = port;
            server.try_start()
        });
        server
    }

    fn try_start(&mut self) -> Result<(), String> {
        let (plain, encrypted) = if self.certificates.is_some() { (0, self.port) } else { (self.port, 0) };
        let (folder, socket) = (self.home.path().display(), self.socket());
        let options = format!(
            "--bind 127.0.0.1 --dir {folder} --unixsocket {} --port {plain} --tls-port {encrypted}",
            socket.display()
        );
        let options = options.split(' ').chain(["--save", ""]).map(str::to_owned).chain(self.options.clone());
        let (program, ready) = (Path::new("redis-server"), "Ready to accept connections");
        self.process = Some(Watched::start(&self.home, "KILL", program, &options.collect::<Vec<_>>(), ready)?);
        Ok(())
    }

    /// The URL for connections over TCP.
    pub fn url(&self) -> String {
        let scheme = if self.certificates.is_some() { "rediss" } else { "redis" };
        format!("{scheme}://localhost:{}", self.port)
    }

    /// The TCP port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.home.path().join("redis.sock")
    }

    /// The certificates of a server with TLS.
    pub const fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("a server that was started with TLS")
    }

    /// Runs a command with `redis-cli` and returns its output.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> String {
        redis_cli(&["-s", &self.socket().display().to_string()], words)
    }

    /// Number of executions of each command except `INFO`, which this function runs.
    pub fn command_counts(&self) -> String {
        let lines = self.command(&["INFO", "commandstats"]);
        let counts = lines.lines().filter_map(|line| line.split_once(",usec")).map(|(count, _)| count);
        counts.filter(|count| !count.starts_with("cmdstat_info")).collect::<Vec<_>>().join("\n")
    }

    /// Stops the server at once, as in a crash.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Starts the stopped server again, at the same address, without any data.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "the server runs");
        self.try_start().expect("the server starts again");
    }

    /// Suspends the server: connections stay open, and the server does not respond.
    pub fn pause(&self) {
        self.process.as_ref().expect("the server runs").signal("STOP");
    }

    /// Resumes the suspended server.
    pub fn resume(&self) {
        self.process.as_ref().expect("the server runs").signal("CONT");
    }
}

/// Runs a command with `redis-cli` and returns its output. The options say how to connect to the server.
#[track_caller]
pub(crate) fn redis_cli(options: &[&str], words: &[&str]) -> String {
    let output = Command::new("redis-cli").args(options).arg("-e").args(words).output().expect("redis-cli runs");
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    assert!(output.status.success(), "{words:?}: {text}");
    text
}
