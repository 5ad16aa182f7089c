use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::home::Home;

/// How long a server that starts may say nothing.
const DEADLINE: Duration = Duration::from_secs(30);

/// Runs a server until a line tells it to end it, or until standard input ends, which it does when this process does,
/// however it does. Nobody else is left then to remove the folder.
///
/// The server's own processes are killed first, so that they say nothing to clients, as in a crash; the server itself
/// gets its signal after that, to give its shared memory back. It stands still meanwhile and starts no new ones. Where
/// the test ends while the server stands still, the system sends SIGHUP to the process group that is left alone.
const WATCHED: &str = r#"
    signal=$1; shift
    "$@" & server=$!
    trap '' HUP
    echo "$server"
    exec 2>/dev/null
    read -r _; alone=$?
    kill -STOP "$server"; pkill -KILL -P "$server"; kill -"$signal" "$server"; kill -CONT "$server"
    wait
    [ "$alone" = 0 ] || rm -rf "$PWD"
"#;

/// A server that runs, until the value is dropped.
pub(crate) struct Watched {
    watcher: Child,
    pid: String,
}

impl Watched {
    /// Starts a server that writes its log to standard error, and waits until this text occurs in it; otherwise returns
    /// the log. The signal is what the server ends at, at once.
    pub(crate) fn start(
        home: &Home,
        signal: &str,
        program: &Path,
        options: &[String],
        ready: &str,
    ) -> Result<Self, String> {
        let mut watcher = home
            .command("sh")
            .args(["-c", WATCHED, "sh", signal])
            .arg(program)
            .args(options)
            // What ends the test by its process group, such as Ctrl-C, must not end the watcher before its work.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shell runs");
        let mut pid = String::new();
        BufReader::new(watcher.stdout.take().expect("a pipe")).read_line(&mut pid).expect("the process id");
        let lines = BufReader::new(watcher.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let server = Self { watcher, pid: pid.trim_end().to_owned() };

        let (sender, receiver) = mpsc::channel();
        // What it says later is not waited for, but must not fill the pipe.
        thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        let mut log = String::new();
        while let Ok(line) = receiver.recv_timeout(DEADLINE) {
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
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid} && pkill -{name} -P {pid}")]).status();
        assert!(status.expect("the shell runs").success(), "the processes of the server get the signal {name}");
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut told = self.watcher.stdin.take().expect("a pipe");
        told.write_all(b"end\n").and_then(|()| self.watcher.wait()).expect("it ends");
    }
}
