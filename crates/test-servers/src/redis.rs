use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Certificates, home::Home, server::Server, wait::wait_until, watched::Watched};

/// A Redis server without persistence.
pub type RedisServer = Server<Redis>;

/// The kind of a [`RedisServer`].
pub enum Redis {}

impl RedisServer {
    /// Starts a server with the default options.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a server with options as on its command line: `["--maxmemory", "1mb"]`.
    pub fn with(options: &[&str]) -> Self {
        Self::start_in(Home::for_this_user(), options, None)
    }

    /// Starts a replica of this server, and waits until it has its data.
    pub fn replica_of(master: &Self) -> Self {
        master.command(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
        let replica = Self::with(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
        wait_until(|| {
            replica
                .command(&["INFO", "replication"])
                .contains("master_link_status:up")
        });
        replica
    }

    /// Starts a server that accepts only TLS, and requires client certificates.
    pub fn with_tls() -> Self {
        let home = Home::for_this_user();
        let certificates = Certificates::make(home.path());
        let [certificate, key, authority] = [
            &certificates.server,
            &certificates.server_key,
            &certificates.authority,
        ]
        .map(|file| file.display().to_string());
        let files = [
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &authority,
        ];
        Self::start_in(
            home,
            &[&["--tls-auth-clients", "yes"], &files[..]].concat(),
            Some(certificates),
        )
    }

    fn start_in(home: Home, options: &[&str], certificates: Option<Certificates>) -> Self {
        Self::start_by(
            Self::run,
            home,
            options.iter().map(ToString::to_string).collect(),
            certificates,
        )
    }

    fn run(&self) -> Result<Watched, String> {
        let (plain, encrypted) = if self.certificates.is_some() {
            (0, self.port)
        } else {
            (self.port, 0)
        };
        let (folder, socket) = (self.home.path().display(), self.socket());
        let options = format!(
            "--bind 127.0.0.1 --dir {folder} --unixsocket {} --port {plain} --tls-port {encrypted}",
            socket.display()
        );
        let options = options
            .split(' ')
            .chain(["--save", ""])
            .map(str::to_owned)
            .chain(self.options.clone());
        let (program, ready) = (Path::new("redis-server"), "Ready to accept connections");
        Watched::start(
            &self.home,
            "KILL",
            program,
            &options.collect::<Vec<_>>(),
            ready,
        )
    }

    /// The URL for connections over TCP.
    pub fn url(&self) -> String {
        let scheme = if self.certificates.is_some() {
            "rediss"
        } else {
            "redis"
        };
        format!("{scheme}://localhost:{}", self.port)
    }

    /// The Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.home.path().join("redis.sock")
    }

    /// Runs a command with `redis-cli` and returns its output.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> String {
        redis_cli(&["-s", &self.socket().display().to_string()], words)
    }
}

/// Runs a command with `redis-cli` and returns its output. The options say how to connect to the server.
#[track_caller]
pub(crate) fn redis_cli(options: &[&str], words: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(options)
        .arg("-e")
        .args(words)
        .output()
        .expect("redis-cli runs");
    let text = String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned();
    assert!(output.status.success(), "{words:?}: {text}");
    text
}
