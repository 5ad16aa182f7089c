//! SIGHUP reloads the settings of the log, the limits of rates, and the origins of pages.

use std::{fs, path::PathBuf};

use animal_store_test_servers::HttpClient;
use serde_json::Value;

use crate::program::{Exited, Program, Running, TOKEN};

const INVALID: &str = "SIGHUP: the configuration is invalid, nothing changes";
const RELOADED: &str = "SIGHUP: these keys were reloaded";
const RESTART: &str = "SIGHUP: these keys have changed, which needs a restart";
const UNCHANGED: &str = "SIGHUP: the configuration has not changed";

/// A running program with a configuration file that changes.
struct Reloaded {
    running: Running,
    file: PathBuf,
    client: HttpClient,
}

impl Reloaded {
    fn start(program: Program, text: &str) -> Self {
        let program = program.file("animal-store.toml", text);
        let file = program.directory().join("animal-store.toml");
        let mut running = program.start();
        let client = HttpClient::new(running.address()).with_token(TOKEN);
        Self {
            running,
            file,
            client,
        }
    }

    /// Waits for the next event of a reload.
    #[track_caller]
    fn next_event(&mut self, message: &str) -> Value {
        let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
        let event = self
            .running
            .wait_for_next(|text| parse(text).filter(|event| event["target"] == "reload"));
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

    /// Sends a request with this id, which gets a 200 or a 404.
    #[track_caller]
    fn request(&self, id: &str, status: u16) {
        let path = if status == 200 {
            "/v1/pets"
        } else {
            "/v1/pets/1"
        };
        self.client
            .request("GET", path)
            .header("X-Request-Id", id)
            .send()
            .assert_status(status);
    }

    /// Stops the program. Returns it and the ids of the requests that it has logged.
    #[track_caller]
    fn stop(self) -> (Exited, Vec<String>) {
        let exited = self.running.terminate();
        let ids = exited
            .requests()
            .iter()
            .filter_map(|event| Some(event["request_id"].as_str()?.to_owned()))
            .collect();
        (exited, ids)
    }
}

#[test]
fn a_reload_changes_the_settings_that_no_other_source_outranks() {
    let mut reloaded = Reloaded::start(
        Program::with_key().env("ANIMAL_STORE_LOG__REQUESTS", "errors"),
        "",
    );
    reloaded.request("info", 404);

    // The outcome of a reload passes the new filter, whatever it is.
    let event = reloaded.reload("log = { requests = 'all', filter = 'off' }", RELOADED);
    assert_eq!(
        (&event["level"], &event["keys"]),
        (&"INFO".into(), &"log.filter".into()),
        "{event}"
    );
    reloaded.request("off", 404);
    reloaded.reload("log.filter = 'debug'", RELOADED);
    reloaded.request("success", 200);
    reloaded.request("debug", 404);
    assert_eq!(
        reloaded.reload("log = { requests = 'all', filter = 'debug' }", UNCHANGED)["level"],
        "INFO"
    );

    let (exited, ids) = reloaded.stop();
    assert_eq!(ids, ["info", "debug"]);
    assert!(
        exited
            .events()
            .iter()
            .any(|event| event["level"] == "DEBUG"),
        "{exited:?}"
    );
}

#[test]
fn limits_of_rates_and_origins_are_reloaded_and_an_equal_limit_keeps_its_state() {
    let mut reloaded = Reloaded::start(Program::with_key(), "");
    let origin = "https://shop.example";
    let list = |reloaded: &Reloaded| {
        reloaded
            .client
            .request("GET", "/v1/pets")
            .header("Origin", origin)
            .send()
    };
    let assert_unlimited = |reloaded: &Reloaded| {
        let response = list(reloaded);
        response
            .assert_status(200)
            .assert_header("RateLimit", None)
            .assert_header("Access-Control-Allow-Origin", None);
    };
    assert_unlimited(&reloaded);

    let others = format!("http.cors_origins = '{origin}'\nhttp.rate_limit.per_second = 1000000\n");
    let event = reloaded.reload(&others, RELOADED);
    assert_eq!(
        event["keys"], "http.cors_origins,http.rate_limit.per_second",
        "{event}"
    );
    let response = list(&reloaded);
    response
        .assert_status(200)
        .assert_header("Access-Control-Allow-Origin", Some(origin));
    response.assert_header("RateLimit-Policy", Some(r#""default";q=1000000;w=1"#));

    reloaded.reload(
        &format!("{others}http.auth_failures.per_minute = 1"),
        RELOADED,
    );
    let unknown = HttpClient::new(reloaded.running.address());
    unknown.get("/v1/pets").assert_status(401);
    unknown.get("/v1/pets").assert_status(429);
    reloaded.reload("http.auth_failures.per_minute = 1", RELOADED);
    unknown.get("/v1/pets").assert_status(429);

    reloaded.reload("", RELOADED);
    assert_unlimited(&reloaded);
}

#[test]
fn an_invalid_file_changes_nothing() {
    let mut reloaded = Reloaded::start(
        Program::with_key(),
        "log.filter = 'warn,animal_store_server=info'",
    );
    let secret = "top-secret";
    let event = reloaded.reload(
        &format!("log.filter = 'info'\nhttp.workers = 0\nlog.lvl = '{secret}'"),
        INVALID,
    );
    let reason = event["reason"].as_str().expect("a reason");
    assert!(
        event["level"] == "ERROR" && reason.contains("http.workers") && reason.contains("log.lvl"),
        "{event}"
    );
    let event = reloaded.reload(&format!("log.filter = 'info'\n{secret}"), INVALID);
    assert_eq!(
        event["reason"],
        "animal-store.toml, line 2, column 11: not valid TOML: key with no value, expected `=`",
        "{event}"
    );
    reloaded.request("hidden", 200);

    reloaded.reload("log.filter = 'info'", RELOADED);
    reloaded.request("shown", 200);
    let (exited, ids) = reloaded.stop();
    assert_eq!((exited.code, ids), (Some(0), vec!["shown".to_owned()]));
    assert!(!exited.output().contains(secret), "{exited:?}");
}

#[test]
fn a_key_that_needs_a_restart_is_reported_by_each_reload_without_its_value() {
    let program = Program::new().file("tokens", TOKEN);
    let tokens = program.directory().join("tokens");
    let file = "keys.memory.tokens_file = 'tokens'\n";
    let mut reloaded = Reloaded::start(program, file);

    let secret = "top-secret-2";
    fs::write(&tokens, secret).expect("a file");
    let event = reloaded.reload(&format!("{file}http.workers = 1"), RESTART);
    reloaded.reload(
        &format!("{file}http.workers = 1\nlog.requests = 'errors'"),
        RELOADED,
    );
    assert_eq!(reloaded.next_event(RESTART)["keys"], event["keys"]);
    assert_eq!(
        (&event["level"], &event["keys"]),
        (&"WARN".into(), &"http.workers,keys.memory.tokens".into())
    );
    fs::write(&tokens, TOKEN).expect("a file");
    reloaded.reload(&format!("{file}log.requests = 'errors'"), UNCHANGED);

    let exited = reloaded.stop().0;
    assert!(
        ![TOKEN, secret]
            .iter()
            .any(|secret| exited.output().contains(secret)),
        "{exited:?}"
    );
}

#[test]
fn several_signals_at_once_end_with_the_last_file() {
    let mut reloaded = Reloaded::start(Program::with_key(), "");
    for text in ["log.requests = 'all'", "log.requests = 'errors'"].repeat(10) {
        fs::write(&reloaded.file, text).expect("a file");
        reloaded.running.signal("HUP");
    }
    fs::write(
        &reloaded.file,
        "log = { requests = 'errors', filter = 'debug' }",
    )
    .expect("a file");
    reloaded.running.signal("HUP");
    reloaded.running.wait_for_log(|event| {
        event["keys"]
            .as_str()
            .is_some_and(|keys| keys.starts_with("log.filter"))
    });

    reloaded.request("success", 200);
    reloaded.request("error", 404);
    assert_eq!(reloaded.stop().1, ["error"]);
}
