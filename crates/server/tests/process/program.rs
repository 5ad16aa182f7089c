//! The program as a process with its own working directory and environment.

mod exited;
mod running;

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{Seek, Write},
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
    path::Path,
    process::{Command, Stdio},
};

use nix::pty::openpty;
use tempfile::TempDir;

pub(crate) use self::{
    exited::{Exited, assert_members, only},
    running::{DEADLINE, Running, lines, metric},
};

/// The API key of [`Program::with_key`].
pub(crate) const TOKEN: &str = "process-token-of-the-tests";

/// A timeout of PostgreSQL, and a lease of cached API keys, that do not expire on a busy machine.
pub(crate) const LONG_TIMEOUT: &str = "30s";

/// A program to be run.
pub(crate) struct Program {
    command: Command,
    directory: TempDir,
}

impl Program {
    /// A program without any configuration.
    pub(crate) fn bare() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_animal-store"));
        let directory = new_folder();
        command.env_clear().current_dir(directory.path());
        hide_installation(directory.path());
        Self {
            command: with_pipes(command),
            directory,
        }
    }

    /// A program on free ports, without a drain delay, with pets and API keys in the default file.
    pub(crate) fn with_file() -> Self {
        Self::bare()
            .set("http.listen", "127.0.0.1:0")
            .set("management.listen", "127.0.0.1:0")
            .set("shutdown.drain_delay", "0s")
    }

    /// The same as [`Program::with_file`] in this folder, which outlives the program.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        let mut program = Self::with_file();
        program.command.current_dir(folder);
        hide_installation(folder);
        program
    }

    /// A program on free ports, without a drain delay, with pets in memory.
    pub(crate) fn new() -> Self {
        Self::with_file().set("storage.backend", "memory")
    }

    /// A program on free ports, with the API key [`TOKEN`].
    pub(crate) fn with_key() -> Self {
        Self::new().set("keys.memory.tokens", TOKEN)
    }

    /// The same as [`Program::with_key`], with pets in PostgreSQL.
    pub(crate) fn with_postgres(url: &str) -> Self {
        Self::with_key()
            .set("storage.backend", "postgres")
            .set("storage.postgres.url", url)
            .set("storage.postgres.timeout", LONG_TIMEOUT)
    }

    /// A program on free ports, with API keys in Redis.
    pub(crate) fn with_redis(url: &str) -> Self {
        Self::new()
            .set("keys.backend", "redis")
            .set("keys.redis.url", url)
            .set("keys.redis.lease", LONG_TIMEOUT)
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets a key of the configuration by its variable.
    pub(crate) fn set(self, key: &str, value: &str) -> Self {
        let variable = key.to_uppercase().replace('.', "__");
        self.env(&format!("ANIMAL_STORE_{variable}"), value)
    }

    /// Adds the words of a command line, which has no quotes.
    pub(crate) fn args(mut self, line: &str) -> Self {
        self.command.args(line.split_whitespace());
        self
    }

    /// Adds one argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Lets a shell start the program by a script, which has the command in `$@`.
    pub(crate) fn run_by_shell(mut self, script: &str) -> Self {
        let mut shell = Command::new("bash");
        let folder = self.command.get_current_dir().expect("a folder");
        shell
            .env_clear()
            .current_dir(folder)
            .args(["-c", script, "bash"]);
        shell.envs(
            self.command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        shell
            .arg(self.command.get_program())
            .args(self.command.get_args());
        self.command = with_pipes(shell);
        self
    }

    /// Writes a file into the working directory.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.directory.path().join(name), text).expect("a file");
        self
    }

    /// Returns the working directory.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Sets the content of standard input.
    pub(crate) fn stdin(self, text: &str) -> Self {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes())
            .and_then(|()| file.rewind())
            .expect("written");
        self.standard_input(file)
    }

    /// Replaces standard input, which is empty otherwise.
    pub(crate) fn standard_input(mut self, input: impl Into<OwnedFd>) -> Self {
        self.command.stdin(input.into());
        self
    }

    /// Replaces standard output. The test gets no lines from it.
    pub(crate) fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.command.stdout(stdout);
        self
    }

    /// Replaces standard error. The test gets no lines from it.
    pub(crate) fn stderr(mut self, stderr: impl Into<Stdio>) -> Self {
        self.command.stderr(stderr);
        self
    }

    pub(crate) fn start(mut self) -> Running {
        Running::new(
            self.command.spawn().expect("the program starts"),
            self.directory,
        )
    }

    /// Runs the program until it exits.
    #[track_caller]
    pub(crate) fn run(self) -> Exited {
        self.start().wait()
    }

    /// Runs the program until it exits, and asserts a success.
    #[track_caller]
    pub(crate) fn succeed(self) -> Exited {
        let exited = self.run();
        exited.assert_code(0);
        exited
    }
}

/// Writes an empty configuration if the folder has none, so that the one of an installed package is not read.
fn hide_installation(folder: &Path) {
    // It fails if there is one.
    let _ = File::create_new(folder.join("animal-store.toml"));
}

fn with_pipes(mut command: Command) -> Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn new_folder() -> TempDir {
    TempDir::new().expect("a folder")
}

/// Opens a listener on a free port, which accepts nothing. Returns its address as well.
pub(crate) fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Returns both sides of a new terminal: the one that shows it, and the one of programs. No other process inherits
/// them.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let pair = openpty(None, None).expect("a terminal");
    // Duplicates are closed in processes that are started.
    (
        pair.master.try_clone().expect("a duplicate").into(),
        pair.slave.try_clone().expect("a duplicate"),
    )
}

/// Runs each command line, and asserts that it is refused with this exit code and this text on standard error.
#[track_caller]
pub(crate) fn assert_all_refused(program: impl Fn() -> Program, rows: &[(&str, i32, &str)]) {
    for &(line, code, reason) in rows {
        let refused = program().args(line).run();
        assert_eq!(refused.code, Some(code), "{line}: {refused:#?}");
        refused.assert_refused(code, &[reason]);
    }
}

/// Runs a line in a shell, as pasted in this folder. Returns its output.
#[track_caller]
pub(crate) fn paste(line: &str, folder: &Path) -> Exited {
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(folder);
    let folder = new_folder();
    let child = with_pipes(command).spawn().expect("bash is installed");
    let exited = Running::new(child, folder).wait();
    exited.assert_code(0);
    exited
}
