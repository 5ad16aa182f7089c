//! The program as a process with its own working directory and environment.

mod running;
mod terminal;

use std::{
    fs,
    io::Write,
    mem,
    os::fd::OwnedFd,
    path::Path,
    process::{ChildStdin, Command, Stdio},
};

use animal_store_test_servers::RedisSpace;
use tempfile::TempDir;

use self::running::COMMAND_DEADLINE;
pub(crate) use self::{
    running::{DEADLINE, Exited, Line, Running, metric},
    terminal::terminal,
};

/// The API key of [`Program::with_key`].
pub(crate) const TOKEN: &str = "process-token-1";

/// Timeout of PostgreSQL that does not expire on a busy machine.
pub(crate) const LONG_TIMEOUT: &str = "30s";

/// A lease of cached API keys that does not end on a busy machine.
const LONG_LEASE: &str = "30s";

/// A program to be run.
pub(crate) struct Program {
    command: Command,
    directory: TempDir,
    stdin: String,
    input: Option<OwnedFd>,
    stdout: Stdio,
    stderr: Stdio,
}

impl Program {
    /// A program without any configuration.
    pub(crate) fn bare() -> Self {
        let directory = TempDir::new().expect("a working directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_animal-store"));
        command.env_clear().current_dir(directory.path());
        Self { command, directory, stdin: String::new(), input: None, stdout: Stdio::piped(), stderr: Stdio::piped() }
    }

    /// A program on free ports, without a drain delay, with pets and API keys in the default file.
    pub(crate) fn with_file() -> Self {
        let program = Self::bare();
        program
            .env("ANIMAL_STORE_HTTP__LISTEN", "127.0.0.1:0")
            .env("ANIMAL_STORE_MANAGEMENT__LISTEN", "127.0.0.1:0")
            .env("ANIMAL_STORE_SHUTDOWN__DRAIN_DELAY", "0s")
    }

    /// The same as [`Program::with_file`] in this folder, which outlives the program.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        let mut program = Self::with_file();
        program.command.current_dir(folder);
        program
    }

    /// A program on free ports, without a drain delay, with pets in memory.
    pub(crate) fn new() -> Self {
        Self::with_file().env("ANIMAL_STORE_STORAGE__BACKEND", "memory")
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
            .env("ANIMAL_STORE_STORAGE__POSTGRES__TIMEOUT", LONG_TIMEOUT)
    }

    /// A program on free ports, with API keys in Redis.
    pub(crate) fn with_redis_url(url: &str) -> Self {
        Self::new()
            .env("ANIMAL_STORE_KEYS__BACKEND", "redis")
            .env("ANIMAL_STORE_KEYS__REDIS__URL", url)
            .env("ANIMAL_STORE_KEYS__REDIS__LEASE", LONG_LEASE)
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

    /// Limits the number of open files of the program, which cannot raise the limit.
    pub(crate) fn file_limit(self, limit: usize) -> Self {
        self.run_by_shell(&format!(r#"ulimit -n {limit} && exec "$@""#))
    }

    /// Passes this socket to the program, as systemd does.
    pub(crate) fn socket(self, socket: impl Into<OwnedFd>) -> Self {
        self.sockets(socket, 1)
    }

    /// Passes this socket to the program as one of this number of sockets, all of them the same.
    pub(crate) fn sockets(self, socket: impl Into<OwnedFd>, count: usize) -> Self {
        let script = r#"exec 3<&0 4<&0 </dev/null; export LISTEN_PID=$$; exec "$@""#;
        let program = self.env("LISTEN_FDS", &count.to_string()).run_by_shell(script);
        program.standard_input(socket)
    }

    /// Lets a shell start the program by a script, which has the command in `$@`.
    pub(crate) fn run_by_shell(mut self, script: &str) -> Self {
        let mut shell = Command::new("bash");
        shell.env_clear().current_dir(self.current_dir()).args(["-c", script, "bash"]);
        shell.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.arg(self.command.get_program()).args(self.command.get_args());
        self.command = shell;
        self
    }

    /// Writes a file into the working directory.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.directory.path().join(name), text).expect("a file");
        self
    }

    fn current_dir(&self) -> &Path {
        self.command.get_current_dir().unwrap_or_else(|| self.directory.path())
    }

    /// Returns the working directory.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Replaces standard input.
    pub(crate) fn standard_input(self, input: impl Into<OwnedFd>) -> Self {
        Self { input: Some(input.into()), ..self }
    }

    /// Sets the content of standard input.
    pub(crate) fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    /// Replaces standard output. The test gets no lines from it.
    pub(crate) fn stdout(self, stdout: impl Into<Stdio>) -> Self {
        Self { stdout: stdout.into(), ..self }
    }

    /// Replaces standard error. The test gets no lines from it.
    pub(crate) fn stderr(self, stderr: impl Into<Stdio>) -> Self {
        Self { stderr: stderr.into(), ..self }
    }

    /// Prints the key of the first start, as on a terminal.
    pub(crate) fn print_key(self) -> Self {
        self.args(&["--print-key"])
    }

    pub(crate) fn start(mut self) -> Running {
        if let Some(input) = self.input.take() {
            self.command.stdin(Stdio::from(input));
            return self.spawn().0;
        }
        let input = mem::take(&mut self.stdin);
        let (running, mut stdin) = self.start_with_stdin();
        // A program that does not read it may have exited.
        let _ = stdin.write_all(input.as_bytes());
        running
    }

    /// Starts the program. Returns its standard input, too, which stays open.
    pub(crate) fn start_with_stdin(mut self) -> (Running, ChildStdin) {
        self.command.stdin(Stdio::piped());
        let (running, stdin) = self.spawn();
        (running, stdin.expect("standard input"))
    }

    fn spawn(mut self) -> (Running, Option<ChildStdin>) {
        self.command.stdout(self.stdout).stderr(self.stderr);
        let mut child = self.command.spawn().expect("the program starts");
        let stdin = child.stdin.take();
        (Running::new(child, self.directory), stdin)
    }

    /// Runs the program until it exits.
    #[track_caller]
    pub(crate) fn run(self) -> Exited {
        self.start().wait_within(COMMAND_DEADLINE)
    }
}
