//! SIGHUP reloads the settings of the log.

use std::{cell::Cell, fs, path::PathBuf};

use animal_store_test_servers::HttpClient;
use serde_json::Value;

use crate::program::{Exited, Line, Program, Running, TOKEN};

const INVALID: &str = "SIGHUP: the configuration is invalid, nothing changes";
const RELOADED: &str = "SIGHUP: the log settings were reloaded";
const RESTART: &str = "SIGHUP: these keys have changed, which needs a restart";
const UNCHANGED: &str = "SIGHUP: the configuration has not changed";

/// A running program with a configuration file that changes.
struct Reloaded {
    running: Running,
    file: PathBuf,
    /// Events of reloads that were waited for.
    events: usize,
    client: HttpClient,
}

impl Reloaded {
    fn start(program: Program, text: &str) -> Self {
        let program = program.file("animal-store.toml", text);
        let file = program.directory().join("animal-store.toml");
        let mut running = program.start();
        let client = HttpClient::new(running.address()).with_token(TOKEN);
        Self { running, file, events: 0, client }
    }

    /// Waits for the next event of a reload.
    #[track_caller]
    fn next_event(&mut self, message: &str) -> Value {
        let seen = Cell::new(0);
        let event = self.running.wait_for(|line| {
            let Line::Out(text) = line else { return None };
            let event: Value = serde_json::from_str(text).ok()?;
            seen.set(seen.get() + usize::from(event["target"] == "reload"));
            (seen.get() > self.events).then_some(event)
        });
        self.events += 1;
        assert_eq!(event["message"], message, "{event}");
        event
    }

    /// Replaces the file, sends SIGHUP, and waits for the first event of the reload.
    #[track_caller]
    fn reload(&mut self, text: &str, message: &str) -> Value {
        fs::write(&self.file, text).expect("a file");
        self.running.signal("HUP");
        self.next_event(message)
    }

    /// Sends a request with this id, and with this status as the response.
    #[track_caller]
    fn request(&self, id: &str, status: u16) {
        let path = if status == 200 { "/v1/pets" } else { "/v1/pets/1" };
        self.client.request("GET", path).header("X-Request-Id", id).send().assert_status(status);
    }

    /// Stops the program. Returns it and the ids of the requests that it has logged.
    #[track_caller]
    fn stop(self) -> (Exited, Vec<String>) {
        let exited = self.running.terminate();
        let ids = exited.events().iter().filter_map(|event| Some(event["request_id"].as_str()?.to_owned())).collect();
        (exited, ids)
    }
}

#[test]
fn a_reload_changes_the_filter() {
    let mut reloaded = Reloaded::start(Program::with_key(), "");
    reloaded.request("info", 200);

    // The outcome of a reload passes the new filter, whatever it is.
    let event = reloaded.reload("log.filter = 'off'", RELOADED);
    assert_eq!((&event["level"], &event["keys"]), (&"INFO".into(), &"log.filter".into()), "{event}");
    reloaded.request("off", 200);
    reloaded.reload("log.filter = 'info'", RELOADED);
    reloaded.request("info-2", 200);
    reloaded.reload("log.filter = 'debug'", RELOADED);

    let (exited, ids) = reloaded.stop();
    assert_eq!(ids, ["info", "info-2"]);
    assert!(exited.events().iter().any(|event| event["level"] == "DEBUG"), "{exited:?}");
}

#[test]
fn an_invalid_file_changes_nothing() {
    let mut reloaded = Reloaded::start(Program::with_key(), "log.filter = 'warn,animal_store_server=info'");
    let secret = "top-secret";

    let text =
        format!("log.filter = 'info'\nhttp.workers = 0\nlog.lvl = '{secret}'\nkeys.memory.tokens = ['{secret} ']");
    let event = reloaded.reload(&text, INVALID);
    assert_eq!(event["level"], "ERROR", "{event}");
    let reason = event["reason"].as_str().expect("a reason");
    assert!(reason.contains("animal-store.toml, line 2) must be auto or a whole number"), "{reason}");
    assert!(reason.contains("; ") && reason.contains("log.lvl (animal-store.toml, line 3) is unknown"), "{reason}");
    reloaded.request("hidden", 200);

    let event = reloaded.reload(&format!("log.filter = 'info'\n{secret}"), INVALID);
    assert_eq!(event["reason"], "animal-store.toml, line 2: not valid TOML", "{event}");
    reloaded.request("hidden-2", 200);

    reloaded.reload("log.filter = 'info'", RELOADED);
    reloaded.request("shown", 200);
    let (exited, ids) = reloaded.stop();
    assert_eq!((exited.code, ids), (Some(0), vec!["shown".to_owned()]));
    assert!(!exited.output().contains(secret), "{exited:?}");
}

#[test]
fn a_key_that_needs_a_restart_is_reported_without_its_value() {
    let program = Program::new().file("tokens", TOKEN);
    let tokens = program.directory().join("tokens");
    let file = "keys.memory.tokens_file = 'tokens'\n";
    let mut reloaded = Reloaded::start(program, file);

    let secret = "top-secret-2";
    fs::write(&tokens, secret).expect("a file");
    // Until the restart, each reload reports it.
    for text in ["http.workers = 1", "http.workers = 1\nlog.requests = 'errors'"] {
        let text = format!("{file}{text}");
        let is_reloaded = text.contains("log.requests");
        let first = reloaded.reload(&text, if is_reloaded { RELOADED } else { RESTART });
        let event = if is_reloaded { reloaded.next_event(RESTART) } else { first };
        assert_eq!((&event["level"], &event["keys"]), (&"WARN".into(), &"http.workers,keys.memory.tokens".into()));
    }
    fs::write(&tokens, TOKEN).expect("a file");
    reloaded.reload(&format!("{file}log.requests = 'errors'"), UNCHANGED);

    reloaded.request("hidden", 200);
    let (exited, ids) = reloaded.stop();
    assert!(ids.is_empty(), "{ids:?}");
    assert!(![TOKEN, secret].iter().any(|secret| exited.output().contains(secret)), "{exited:?}");
}

#[test]
fn the_environment_and_flags_outrank_the_file_of_a_reload() {
    let program = Program::with_key().env("ANIMAL_STORE_LOG__REQUESTS", "errors").args(&["--set", "log.filter=info"]);
    let mut reloaded = Reloaded::start(program, "");

    let event = reloaded.reload("log = { requests = 'all', filter = 'off' }", UNCHANGED);
    assert_eq!(event["level"], "INFO", "{event}");
    reloaded.request("success", 200);
    reloaded.request("error", 404);

    assert_eq!(reloaded.stop().1, ["error"]);
}

#[test]
fn several_signals_at_once_end_with_the_last_file() {
    let mut reloaded = Reloaded::start(Program::with_key(), "");
    for requests in ["all", "errors"].repeat(10) {
        fs::write(&reloaded.file, format!("log.requests = '{requests}'")).expect("a file");
        reloaded.running.signal("HUP");
    }
    fs::write(&reloaded.file, "log = { requests = 'errors', filter = 'debug' }").expect("a file");
    reloaded.running.signal("HUP");
    reloaded.running.wait_for_log(|event| event["keys"].as_str().is_some_and(|keys| keys.starts_with("log.filter")));

    reloaded.request("success", 200);
    reloaded.request("error", 404);
    assert_eq!(reloaded.stop().1, ["error"]);
}
