use std::{path::PathBuf, process::Command};

use crate::{Certificates, home::Home, server::Server, wait::wait_until, watched::Watched};

/// A Redis server without persistence.
pub type RedisServer = Server<Redis>;

/// The kind of a [`RedisServer`].
pub enum Redis {}

impl RedisServer {
    /// Starts a server with the default options.
    pub fn start() -> Self {
        Self::with("")
    }

    /// Starts a server with options as on its command line, without spaces in their values: `--maxmemory 1mb`.
    pub fn with(options: &str) -> Self {
        let options = options.split_whitespace().map(str::to_owned).collect();
        Self::start_by(Self::launch, Home::for_this_user(), options, None)
    }

    /// Starts a replica of this server, and waits until it has its data.
    pub fn replica_of(master: &Self) -> Self {
        master.run("CONFIG SET repl-diskless-sync-delay 0");
        let replica = Self::with(&format!("--replicaof 127.0.0.1 {}", master.port()));
        wait_until(|| {
            replica
                .run("INFO replication")
                .contains("master_link_status:up")
        });
        replica
    }

    /// Starts a server that accepts only TLS, and requires client certificates.
    pub fn with_tls() -> Self {
        let home = Home::for_this_user();
        let files = Certificates::make(home.path());
        let mut options = vec!["--tls-auth-clients".to_owned(), "yes".to_owned()];
        for (option, file) in [
            ("--tls-cert-file", &files.server),
            ("--tls-key-file", &files.server_key),
            ("--tls-ca-cert-file", &files.authority),
        ] {
            options.extend([option.to_owned(), file.display().to_string()]);
        }
        Self::start_by(Self::launch, home, options, Some(files))
    }

    fn launch(&self) -> Result<Watched, String> {
        let folder = self.home.path().display();
        let socket = self.socket();
        let files = format!("--dir {folder} --unixsocket {}", socket.display());
        let ports = self.plain_and_tls_port();
        let ports = format!(
            "--bind 127.0.0.1 --port {} --tls-port {}",
            ports[0], ports[1]
        );
        let mut options: Vec<_> = format!("{files} {ports}")
            .split(' ')
            .chain(["--save", ""])
            .map(str::to_owned)
            .collect();
        options.extend(self.options.clone());
        let ready = "Ready to accept connections";
        Watched::start(&self.home, "KILL", "redis-server", &options, ready)
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

    /// Runs a command of words without spaces.
    #[track_caller]
    pub fn run(&self, line: &str) -> String {
        self.command(&line.split(' ').collect::<Vec<_>>())
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
