use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{Certificates, port};

/// Runs the server until standard input ends, which it does when this process does, however it does. Where the server
/// stands still by then, the system sends SIGHUP to the process group that is left alone.
const WATCHED: &str = r#"
    redis-server "$@" & server=$!
    trap '' HUP
    echo "$server"
    exec >/dev/null
    cat; kill -KILL "$server"; wait
"#;

/// A Redis server of its own, without persistence.
pub struct RedisServer {
    directory: TempDir,
    options: Vec<String>,
    port: u16,
    certificates: Option<Certificates>,
    process: Option<Process>,
}

struct Process {
    watcher: Child,
    pid: String,
}

impl RedisServer {
    /// Starts one at its defaults.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts one with these options, as on its command line: `["--maxmemory", "1mb"]`.
    pub fn with(options: &[&str]) -> Self {
        let options = options.iter().map(ToString::to_string).collect();
        Self::start_in(TempDir::new().expect("a folder"), options, None)
    }

    /// Starts one that speaks TLS alone, and asks clients for a certificate.
    pub fn with_tls() -> Self {
        let directory = TempDir::new().expect("a folder");
        let certificates = Certificates::make(directory.path());
        let mut options = vec!["--tls-auth-clients".to_owned(), "yes".to_owned()];
        for (option, file) in [
            ("--tls-cert-file", &certificates.server),
            ("--tls-key-file", &certificates.server_key),
            ("--tls-ca-cert-file", &certificates.authority),
        ] {
            options.extend([option.to_owned(), file.display().to_string()]);
        }
        Self::start_in(directory, options, Some(certificates))
    }

    fn start_in(directory: TempDir, options: Vec<String>, certificates: Option<Certificates>) -> Self {
        let mut server = Self { directory, options, port: 0, certificates, process: None };
        // Another process may take the free port first; then there is another one.
        for _ in 0..20 {
            server.port = port::listener().local_addr().expect("an address").port();
            if server.try_start() {
                return server;
            }
        }
        panic!("redis-server does not start; is it installed? Its options: {:?}", server.options);
    }

    fn try_start(&mut self) -> bool {
        let folder = self.directory.path().display().to_string();
        let (plain, encrypted) = if self.certificates.is_some() { (0, self.port) } else { (self.port, 0) };
        let mut watcher = Command::new("sh")
            .args(["-c", WATCHED, "sh", "--bind", "127.0.0.1", "--dir", &folder, "--save", "", "--unixsocket"])
            .arg(self.socket())
            .args(["--port", &plain.to_string(), "--tls-port", &encrypted.to_string()])
            .args(&self.options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the shell runs");
        let mut lines = BufReader::new(watcher.stdout.take().expect("standard output")).lines().map_while(Result::ok);
        let pid = lines.next().expect("the process id");
        let process = Process { watcher, pid };
        let ready = lines.by_ref().any(|line| line.contains("Ready to accept connections"));
        // What else it says is not waited for, but must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        self.process = Some(process);
        if ready {
            return true;
        }
        self.stop();
        false
    }

    /// How to connect to it over TCP.
    pub fn url(&self) -> String {
        let scheme = if self.certificates.is_some() { "rediss" } else { "redis" };
        format!("{scheme}://localhost:{}", self.port)
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    /// What it takes to speak TLS with it.
    pub const fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("a server that was started with TLS")
    }

    /// Runs a command by `redis-cli` and returns what that printed.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> String {
        redis_cli(&["-s", &self.socket().display().to_string()], words)
    }

    /// How often each command was carried out, without those of this type.
    pub fn command_counts(&self) -> String {
        let lines = self.command(&["INFO", "commandstats"]);
        let counts = lines.lines().filter_map(|line| line.split_once(",usec")).map(|(count, _)| count);
        counts.filter(|count| !count.starts_with("cmdstat_info")).collect::<Vec<_>>().join("\n")
    }

    /// Ends it at once, as a crash does.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.signal("CONT");
            drop(process.watcher.stdin.take());
            process.watcher.wait().expect("it ends");
        }
    }

    /// Starts it again, at the same address, with nothing in it.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none() && self.try_start(), "it starts again");
    }

    /// Lets it stand still until [`resume`](Self::resume): connections stay open, nothing is answered.
    pub fn pause(&self) {
        self.process.as_ref().expect("it runs").signal("STOP");
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.as_ref().expect("it runs").signal("CONT");
    }
}

impl Process {
    fn signal(&self, name: &str) {
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.pid)]).status();
        status.expect("the shell runs");
    }
}

/// Runs a command by `redis-cli`, which finds the server by the first words, and returns what that printed.
#[track_caller]
pub(crate) fn redis_cli(server: &[&str], words: &[&str]) -> String {
    let output = Command::new("redis-cli").args(server).arg("-e").args(words).output().expect("redis-cli runs");
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    assert!(output.status.success(), "{words:?}: {text}");
    text
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}
