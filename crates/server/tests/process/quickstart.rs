//! The first start and later ones without any configuration, and starts without an API key.

use crate::prelude::*;

/// What a later start prints before the command that creates a key.
const CREATE_KEY: &str = "To create an API key: ";

/// Waits for the two commands.
pub(crate) fn commands(running: &mut Running) -> [String; 2] {
    [" -d ", "?status="].map(|part| {
        let is_command = |line: &str| line.trim().starts_with("curl ") && line.contains(part);
        running.wait_for(|line| is_command(line).then(|| line.to_owned()))
    })
}

/// Returns the token in a command.
pub(crate) fn token(command: &str) -> String {
    let rest = command.split_once("Bearer ").expect("a token").1;
    rest.split_once('\'').expect("quotes").0.to_owned()
}

/// Executes a command of curl. Returns the JSON in the response. While the file does not respond in time, as on a busy
/// machine, nothing is added, and the command is executed again.
#[track_caller]
fn curl(command: &str, status: u16) -> Value {
    let mut outputs = (0..20).map(|_| paste(command, Path::new("/")));
    let is_available =
        |output: &Exited| !output.stdout.concat().contains(r#""code":"unavailable""#);
    let output = outputs.find(is_available).expect("the file responds");
    output.assert_has(&format!("HTTP/1.1 {status} "));
    serde_json::from_str(output.stdout.last().expect("a body")).expect("JSON")
}

#[track_caller]
pub(crate) fn assert_both_work([add, list]: &[String; 2]) -> Value {
    let added = curl(add, 201);
    assert_members(&added, &json!({"name": "Rex", "status": "available"}));
    assert_eq!(curl(list, 200), json!([added]));
    added
}

#[test]
fn both_commands_and_the_api_explorer_work_as_printed_and_nothing_else_has_the_token() {
    let in_file = Store::sqlite();
    let in_memory = Store::sqlite();
    let programs = [
        (&in_file, "--print-key"),
        (&in_memory, "--print-key --memory"),
    ];
    let tokens = programs.map(|(store, line)| {
        let program = store.unconfigured().args(line);
        let mut running = program.set("log.filter", "trace").start();
        let commands = commands(&mut running);
        assert_both_work(&commands);
        let url = running.wait_for_text("In a browser, with the same key: ");
        let page = paste(&format!("curl -sfL {url}"), store.folder());
        page.assert_has("<!DOCTYPE html>");

        let token = token(&commands[0]);
        let exited = running.terminate();
        assert!(!exited.assert_code(0).stdout.is_empty());
        let output = exited.output();
        let shown: Vec<_> = output
            .lines()
            .filter(|line| line.contains(&token))
            .collect();
        assert_eq!(shown, commands);
        token
    });
    assert_ne!(tokens[0], tokens[1]);
    let left = fs::read_dir(in_memory.folder()).expect("a folder").count();
    assert_eq!(left, 1, "only the configuration is left");
}

#[test]
fn the_pet_and_the_key_of_the_first_start_are_there_after_a_restart_until_the_key_is_revoked() {
    let store = Store::sqlite();
    let folder = store.folder();
    let path = folder.canonicalize().expect("a path").join("it's pets.db");
    let kept = format!("Pets and API keys are kept in {}", path.display());
    let program = || {
        let program = store.unconfigured().args("serve --print-key --set");
        program.arg("storage.sqlite.path=it's pets.db")
    };
    let mut first = program().start();
    assert_eq!(first.wait_for_text(&kept), "");
    let commands = commands(&mut first);
    let added = assert_both_work(&commands);
    let revoke = first.wait_for_text("The key below stays valid. To revoke it: ");
    let first_address = first.address().to_string();
    first.terminate().assert_code(0);

    let mut second = program().start();
    let create_key = second.wait_for_text(CREATE_KEY);
    let address = second.address();
    let list = commands[1].replace(&first_address, &address.to_string());
    assert_eq!(curl(&list, 200), json!([added]));
    // The commands are for the shell and the folder in which the program was started.
    let new = paste(&create_key, folder).stdout.concat();
    wait_until(|| status(address, &new) == 200);
    paste(&revoke, folder);
    wait_until(|| status(address, &token(&list)) == 401);

    let exited = second.terminate();
    let listens = format!("The animal store listens on http://{address}.");
    let printed = exited.stderr.iter().map(|line| line.trim());
    let printed = printed.filter(|line| !line.is_empty());
    let create_key = format!("{CREATE_KEY}{create_key}");
    assert!(printed.eq([&*listens, &kept, &create_key]), "{exited:?}");
}

#[test]
fn nothing_is_printed_if_a_key_is_configured() {
    let program = Program::with_key().set("management.listen", "");
    let mut running = program.args("--print-key").start();
    let event = running.wait_for_event("listening");
    // An empty address means no listener.
    assert_eq!(event.get("management"), None, "{event}");
    running.terminate().assert_success();
}

#[test]
fn no_key_is_created_if_standard_error_is_a_log_and_the_log_says_how_to_create_one() {
    let store = Store::sqlite();
    let file = || store.unconfigured().args("--set http.workers=1");
    let in_file = "there is no API key: every request gets 401 until this command creates one";
    let in_memory =
        "there is no API key: every request gets 401; set keys.memory.tokens and restart";
    // Under a service manager, any address is accepted.
    let managed = file().args("--listen 0.0.0.0:0");
    let managed = managed.env("NOTIFY_SOCKET", "/missing/notify");
    for (program, advice) in [
        (file(), in_file),
        (Program::new(), in_memory),
        (managed, in_file),
    ] {
        let mut running = program.start();
        let local = ([127, 0, 0, 1], running.address().port()).into();
        let event = running.wait_for_event(advice);
        assert_eq!(status(local, "no-token"), 401);
        if let Some(command) = event["command"].as_str() {
            let end = " --set 'http.workers=1' keys create --label NAME";
            assert!(command.ends_with(end), "{command}");
        }
        running.terminate().assert_success();
    }
    assert_eq!(store.list_keys(), ["[]"]);

    let redis = RedisServer::start();
    let mut running = Program::with_redis(&redis.url()).start();
    running.wait_for_text("to create a key: animal-store keys create --label NAME");
}

#[test]
fn on_a_terminal_the_key_is_printed_unless_other_machines_can_connect() {
    let store = Store::sqlite();
    let (shown, stderr) = terminal();
    let public = store.unconfigured().args("--listen 0.0.0.0:0");
    let duplicate = stderr.try_clone().expect("a duplicate");
    public.stderr(duplicate).run().assert_code(1);
    assert_eq!(store.list_keys(), ["[]"]);

    let mut running = store.unconfigured().stderr(stderr).start();
    let add = lines(shown).find(|line| line.trim().starts_with("curl "));
    let token = token(&add.expect("a command"));
    assert_eq!(status(running.address(), &token), 200);
    running.terminate().assert_success();
}

#[test]
fn a_start_that_cannot_print_a_key_leaves_none() {
    let store = Store::sqlite();
    let program = || store.unconfigured().args("--print-key");
    let full = File::options().write(true).open("/dev/full");
    let exited = program().stderr(full.expect("a device")).run();
    let mut events = exited.assert_code(1).events();
    events.retain(|event| event["target"] == "audit");
    let changes: Vec<_> = events.iter().map(|event| &event["message"]).collect();
    assert_eq!(changes, ["API key created", "API key revoked"]);

    assert_eq!(store.list_keys(), ["[]"]);
    // A first key is only added to a file that never had one.
    program().start().wait_for_text(CREATE_KEY);
}

#[test]
fn an_invalid_key_does_not_prevent_the_start_of_a_store_and_of_its_backup() {
    let store = Store::sqlite();
    let good = store.create_key();
    let bad = store.create_key();
    let label = format!("UPDATE api_keys SET label = '' WHERE id = '{}'", bad.id);
    store.execute(&label);
    let backup = store.backup();
    for store in [store, backup] {
        let mut running = store.unconfigured().start();
        let event = running.wait_for_event("an API key is not valid: this command revokes it");
        assert!(event["reason"].to_string().contains(&bad.id), "{event}");
        assert_eq!(status(running.address(), &good.token), 200);
        let command = event["command"].as_str().expect("a command");
        // That is for the user of a service manager.
        assert!(!command.starts_with("runuser"), "{command}");
        paste(&command.replace("ID", &bad.id), store.folder());
        assert!(!store.list_keys().concat().contains(&bad.id));
    }
}
