//! SIGHUP reloads the settings of the log, the limits of rates, and the origins of pages.

use crate::prelude::*;

const INVALID: &str = "SIGHUP: the configuration is invalid, nothing changes";
const RELOADED: &str = "SIGHUP: these settings were reloaded";
const RESTART: &str = "SIGHUP: these settings have changed, which needs a restart";
const UNCHANGED: &str = "SIGHUP: no setting has changed";

const SHOP: &str = "https://shop.example";

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
        let client = running.client();
        Self {
            running,
            file,
            client,
        }
    }

    /// Waits for the next event of a reload.
    #[track_caller]
    fn next_event(&mut self, message: &str) -> Value {
        let event = self.running.wait_for_next(|text| {
            let event = serde_json::from_str::<Value>(text).ok();
            event.filter(|event| event["target"] == "reload")
        });
        assert_eq!(event["message"], message, "{event}");
        event
    }

    /// Replaces the file and sends SIGHUP.
    #[track_caller]
    fn replace(&self, text: &str) {
        fs::write(&self.file, text).expect("a file");
        self.running.signal("HUP");
    }

    /// Replaces the file, sends SIGHUP, and waits for the first event of the reload.
    #[track_caller]
    fn reload(&mut self, text: &str, message: &str) -> Value {
        self.replace(text);
        self.next_event(message)
    }

    /// Sends a request with this id, which gets a 200, or for an id that begins with `error`, a 404.
    #[track_caller]
    fn request(&self, id: &str) {
        let (path, status) = if id.starts_with("error") {
            ("/v1/pets/1", 404)
        } else {
            ("/v1/pets", 200)
        };
        let request = self.client.request("GET", path).header("X-Request-Id", id);
        request.send().assert_status(status);
    }

    /// Stops the program, and asserts the ids of the requests that it has logged.
    #[track_caller]
    fn assert_logged(self, ids: &[&str]) -> Exited {
        let exited = self.running.terminate();
        exited.assert_code(0);
        let lines = exited.requests();
        let logged: Vec<_> = lines.iter().map(|line| &line["request_id"]).collect();
        assert_eq!(logged, ids);
        exited
    }
}

#[test]
fn a_reload_changes_the_settings_that_no_other_source_outranks() {
    let program = Program::with_key().set("log.requests", "errors");
    let mut reloaded = Reloaded::start(program, "");
    reloaded.request("error-info");

    // The outcome of a reload passes the new filter, whatever it is.
    let event = reloaded.reload("log = { requests = 'all', filter = 'off' }", RELOADED);
    assert_members(&event, &json!({"level": "INFO", "keys": "log.filter"}));
    reloaded.request("error-off");
    reloaded.reload("log.filter = 'debug'", RELOADED);
    reloaded.request("success");
    reloaded.request("error-debug");
    let event = reloaded.reload("log = { requests = 'all', filter = 'debug' }", UNCHANGED);
    assert_eq!(event["level"], "INFO");

    let exited = reloaded.assert_logged(&["error-info", "error-debug"]);
    exited.assert_has("DEBUG");
}

#[test]
fn limits_of_rates_and_origins_are_reloaded_and_an_equal_limit_keeps_its_state() {
    let mut reloaded = Reloaded::start(Program::with_key(), "");
    let assert_allowed = |reloaded: &Reloaded, policy, origin| {
        let list = reloaded.client.request("GET", "/v1/pets");
        let list = list.header("Origin", SHOP).send();
        list.assert_status(200)
            .assert_header("RateLimit-Policy", policy)
            .assert_header("Access-Control-Allow-Origin", origin);
    };
    assert_allowed(&reloaded, None, None);

    let others = format!("http.cors_origins = '{SHOP}'\nhttp.rate_limit.per_second = 1000000\n");
    let event = reloaded.reload(&others, RELOADED);
    let keys = "http.cors_origins,http.rate_limit.per_second";
    assert_eq!(event["keys"], keys, "{event}");
    let policy = r#""default";q=1000000;w=1"#;
    assert_allowed(&reloaded, Some(policy), Some(SHOP));

    let failures = "http.auth_failures.per_minute = 1";
    reloaded.reload(&format!("{others}{failures}"), RELOADED);
    let unknown = HttpClient::new(reloaded.running.address());
    unknown.get("/v1/pets").assert_status(401);
    unknown.get("/v1/pets").assert_status(429);
    reloaded.reload(failures, RELOADED);
    unknown.get("/v1/pets").assert_status(429);

    reloaded.reload("", RELOADED);
    assert_allowed(&reloaded, None, None);
}

#[test]
fn an_invalid_file_changes_nothing() {
    let hidden = "log.filter = 'warn,animal_store_server=info'";
    let mut reloaded = Reloaded::start(Program::with_key(), hidden);
    let values = "log.filter = 'info'\nhttp.workers = 0\nlog.lvl = 'top-secret'";
    let event = reloaded.reload(values, INVALID);
    assert_eq!(event["level"], "ERROR");
    let reason = event["reason"].to_string();
    assert!(reason.contains("http.workers") && reason.contains("log.lvl"));
    let event = reloaded.reload("log.filter = 'info'\ntop-secret", INVALID);
    let reason =
        "animal-store.toml: TOML parse error at line 2, column 11: key with no value, expected `=`";
    assert_eq!(event["reason"], reason);
    reloaded.request("hidden");

    reloaded.reload("log.filter = 'info'", RELOADED);
    reloaded.request("shown");
    let exited = reloaded.assert_logged(&["shown"]);
    exited.assert_lacks("top-secret");
}

#[test]
fn a_key_that_needs_a_restart_is_reported_by_each_reload_without_its_value() {
    let program = Program::new().file("tokens", TOKEN);
    let tokens = program.directory().join("tokens");
    let file = "keys.memory.tokens_file = 'tokens'\n";
    let mut reloaded = Reloaded::start(program, file);

    fs::write(&tokens, "top-secret-2").expect("a file");
    let event = reloaded.reload(&format!("{file}http.workers = 1"), RESTART);
    let expected = json!({"level": "WARN", "keys": "http.workers,keys.memory.tokens"});
    assert_members(&event, &expected);
    let both = format!("{file}http.workers = 1\nlog.requests = 'errors'");
    reloaded.reload(&both, RELOADED);
    assert_members(&reloaded.next_event(RESTART), &expected);
    fs::write(&tokens, TOKEN).expect("a file");
    reloaded.reload(&format!("{file}log.requests = 'errors'"), UNCHANGED);

    let exited = reloaded.assert_logged(&[]);
    exited.assert_lacks(TOKEN).assert_lacks("top-secret-2");
}

#[test]
fn several_signals_at_once_end_with_the_last_file() {
    let mut reloaded = Reloaded::start(Program::with_key(), "");
    for _ in 0..10 {
        reloaded.replace("log.requests = 'all'");
        reloaded.replace("log.requests = 'errors'");
    }
    reloaded.replace("log = { requests = 'errors', filter = 'debug' }");
    let is_last = |event: &Value| event["keys"].to_string().contains("log.filter");
    reloaded.running.wait_for_log(is_last);

    reloaded.request("success");
    reloaded.request("error");
    reloaded.assert_logged(&["error"]);
}
