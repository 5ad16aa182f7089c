use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::{home::Home, programs};

/// Maximum time between two lines of the log while a server starts.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A shell script that runs a server until it reads a line, or until standard input ends because the test process
/// ended. In the second case the script also removes the folder.
///
/// As in a crash, the child processes of the server are killed first, so that they send nothing to clients. The server
/// is suspended meanwhile, so that it starts no new child processes. Then it gets its signal, and releases its shared
/// memory. If the test ends while the server is suspended, the system sends SIGHUP to the orphaned process group.
const WATCHED: &str = r#"
    signal=$1; shift
    "$@" >&2 & server=$!
    trap '' HUP
    echo "$server"
    exec 2>/dev/null
    read -r _; alone=$?
    kill -STOP "$server"; pkill -KILL -P "$server"; kill -"$signal" "$server"; kill -CONT "$server"
    wait
    [ "$alone" = 0 ] || rm -rf "$PWD"
"#;

/// A server that runs until the value is dropped.
pub(crate) struct Watched {
    watcher: Child,
    pid: String,
}

impl Watched {
    /// Starts a server and waits until its log, on standard error or output, contains the text `ready`. If it does not,
    /// returns the log. The server ends at once when it gets `signal`.
    pub(crate) fn start(
        home: &Home,
        signal: &str,
        program: &str,
        options: &[String],
        ready: &str,
    ) -> Result<Self, String> {
        let mut watcher = home
            .command("sh")
            .args(["-c", WATCHED, "sh", signal])
            .arg(programs::find(program))
            .args(options)
            // A signal to the process group of the test, such as Ctrl-C, must not end the script.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shell runs");
        let mut pid = String::new();
        BufReader::new(watcher.stdout.take().expect("a pipe"))
            .read_line(&mut pid)
            .expect("the process id");
        let lines = BufReader::new(watcher.stderr.take().expect("a pipe"))
            .lines()
            .map_while(Result::ok);
        let server = Self {
            watcher,
            pid: pid.trim_end().to_owned(),
        };

        let (sender, receiver) = mpsc::channel();
        // The rest of the log is discarded: it must not fill the pipe.
        thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        let mut log = String::new();
        while let Ok(line) = receiver.recv_timeout(TIMEOUT) {
            if line.contains(ready) {
                return Ok(server);
            }
            log = log + &line + "\n";
        }
        Err(log)
    }

    /// Sends a signal to the server and to the processes that it started.
    pub(crate) fn signal(&self, name: &str) {
        let pid = &self.pid;
        let command = format!("kill -{name} {pid} && {{ pkill -{name} -P {pid} || true; }}");
        let status = Command::new("sh")
            .args(["-c", &command])
            .status()
            .expect("the shell runs");
        assert!(
            status.success(),
            "the server does not get the signal {name}"
        );
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut input = self.watcher.stdin.take().expect("a pipe");
        input
            .write_all(b"end\n")
            .and_then(|()| self.watcher.wait())
            .expect("the script ends");
    }
}
