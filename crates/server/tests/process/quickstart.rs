//! The first start and later ones without any configuration, and starts without an API key.

use std::{
    fs::{self, File},
    path::Path,
};

use animal_store_test_servers::{HttpClient, RedisSpace, wait_until};
use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    keys::{list_in, token_and_id},
    pets::status,
    program::{Program, Running, lines, paste, terminal},
};

/// What a later start prints before the command that creates a key.
const CREATE_KEY: &str = "To create an API key: ";

/// Waits for the two commands.
pub(crate) fn commands(running: &mut Running) -> [String; 2] {
    let command = |line: &str| {
        line.trim_start()
            .starts_with("curl ")
            .then(|| line.to_owned())
    };
    [" -d ", "?status="]
        .map(|part| running.wait_for(|line| command(line).filter(|line| line.contains(part))))
}

/// Returns the token in a command.
pub(crate) fn token(command: &str) -> String {
    let rest = command.split_once("Bearer ").expect("a token").1;
    rest.split_once('\'').expect("quotes").0.to_owned()
}

/// Executes a command of curl. Returns the JSON in the response.
#[track_caller]
fn curl(command: &str, status: u16) -> Value {
    let output = paste(command, Path::new("/")).stdout;
    assert!(
        output[0].starts_with(&format!("HTTP/1.1 {status} ")),
        "{command}: {output:?}"
    );
    serde_json::from_str(output.last().expect("a body")).expect("JSON")
}

#[track_caller]
pub(crate) fn assert_both_work([add, list]: &[String; 2]) -> Value {
    let added = curl(add, 201);
    assert_eq!(
        (&added["name"], &added["status"]),
        (&"Rex".into(), &"available".into())
    );
    assert_eq!(curl(list, 200), Value::Array(vec![added.clone()]));
    added
}

#[test]
fn both_commands_and_the_api_explorer_work_as_printed_and_nothing_else_has_the_token() {
    let folders = [(); 2].map(|()| TempDir::new().unwrap());
    let tokens = [&["--print-key"][..], &["--print-key", "--memory"]]
        .into_iter()
        .zip(&folders)
        .map(|(args, folder)| {
            let program =
                Program::in_folder(folder.path()).env("ANIMAL_STORE_LOG__FILTER", "trace");
            let mut running = program.args(args).start();
            let commands = commands(&mut running);
            assert_both_work(&commands);
            let url = running.wait_for_text("In a browser, with the same key: ");
            assert_eq!(
                paste(&format!("curl -sfL {url}"), folder.path()).stdout[0],
                "<!DOCTYPE html>"
            );

            let token = token(&commands[0]);
            let exited = running.terminate();
            assert_eq!(exited.code, Some(0), "{exited:?}");
            assert!(
                !exited.stdout.is_empty() && !exited.stdout.join("\n").contains(&token),
                "the log has the token"
            );
            let showing: Vec<_> = exited
                .stderr
                .iter()
                .filter(|line| line.contains(&token))
                .collect();
            assert_eq!(showing, commands.iter().collect::<Vec<_>>());
            token
        });
    let tokens: Vec<_> = tokens.collect();
    assert_ne!(tokens[0], tokens[1]);
    assert_eq!(
        fs::read_dir(folders[1].path()).unwrap().count(),
        0,
        "pets in memory leave nothing"
    );
}

#[test]
fn the_pet_and_the_key_of_the_first_start_are_there_after_a_restart_until_the_key_is_revoked() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().canonicalize().unwrap().join("it's pets.db");
    let kept = format!("Pets and API keys are kept in {}", path.display());
    let file = "storage.sqlite.path=it's pets.db";
    let program =
        || Program::in_folder(folder.path()).args(&["serve", "--set", file, "--print-key"]);
    let mut first = program().start();
    assert_eq!(first.wait_for_text(&kept), "");
    let commands = commands(&mut first);
    let added = assert_both_work(&commands);
    let revoke = first.wait_for_text("The key below stays valid. To revoke it: ");
    let first_address = first.address().to_string();
    assert_eq!(first.terminate().code, Some(0));

    let mut second = program().start();
    let create_key = second.wait_for_text(CREATE_KEY);
    let address = second.address();
    let list = commands[1].replace(&first_address, &address.to_string());
    assert_eq!(curl(&list, 200), Value::Array(vec![added]));
    // The commands are for the shell and the folder in which the program was started.
    let new = paste(&create_key, folder.path()).stdout.concat();
    wait_until(|| status(address, &new) == 200);
    paste(&revoke, folder.path());
    wait_until(|| status(address, &token(&list)) == 401);

    let exited = second.terminate();
    let listens = format!("The animal store listens on http://{address}.");
    let printed: Vec<_> = exited
        .stderr
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(
        printed,
        [listens, kept, format!("{CREATE_KEY}{create_key}")]
    );
}

#[test]
fn nothing_is_printed_if_a_key_is_configured() {
    let program = Program::with_key().env("ANIMAL_STORE_MANAGEMENT__LISTEN", "");
    let mut running = program.args(&["--print-key"]).start();
    assert_eq!(
        running.wait_for_event("listening").get("management"),
        None,
        "an empty address means no listener"
    );
    running.terminate().assert_success();
}

#[test]
fn no_key_is_created_if_standard_error_is_a_log_and_the_log_says_how_to_create_one() {
    let folder = TempDir::new().unwrap();
    let file = || Program::in_folder(folder.path()).args(&["--set", "http.workers=1"]);
    let in_file = "there is no API key: every request gets 401 until this command creates one";
    let in_memory =
        "there is no API key: every request gets 401; set keys.memory.tokens and restart";
    // Under a service manager, any address is accepted.
    let managed = file()
        .args(&["--listen", "0.0.0.0:0"])
        .env("NOTIFY_SOCKET", "/missing/notify");
    for (program, advice) in [
        (file(), in_file),
        (Program::new(), in_memory),
        (managed, in_file),
    ] {
        let mut running = program.start();
        let local = ([127, 0, 0, 1], running.address().port()).into();
        let event = running.wait_for_event(advice);
        assert_eq!(HttpClient::new(local).get("/v1/pets").status, 401);
        if let Some(command) = event["command"].as_str() {
            assert!(
                command.ends_with(" --set 'http.workers=1' keys create --label NAME"),
                "{command}"
            );
        }
        running.terminate().assert_success();
    }
    assert_eq!(list_in(folder.path()), "[]");

    let space = RedisSpace::new();
    let mut running = Program::with_redis(&space).start();
    let advice = "to create a key: animal-store keys create --label NAME";
    running.wait_for_log(|event| {
        event["message"]
            .as_str()
            .is_some_and(|message| message.ends_with(advice))
    });
}

#[test]
fn on_a_terminal_the_key_is_printed_unless_other_machines_can_connect() {
    let folder = TempDir::new().unwrap();
    let program = || Program::in_folder(folder.path());
    let (shown, stderr) = terminal();
    let public = program()
        .args(&["--listen", "0.0.0.0:0"])
        .stderr(stderr.try_clone().unwrap());
    assert_eq!(public.run().code, Some(1));
    assert_eq!(list_in(folder.path()), "[]");

    let mut running = program().stderr(stderr).start();
    let add = lines(shown)
        .map(|line| line.trim().to_owned())
        .find(|line| line.starts_with("curl "))
        .expect("a command");
    assert_eq!(status(running.address(), &token(&add)), 200);
    running.terminate().assert_success();
}

#[test]
fn a_start_that_cannot_print_a_key_leaves_none() {
    let folder = TempDir::new().unwrap();
    let program = || Program::in_folder(folder.path()).args(&["--print-key"]);
    let exited = program()
        .stderr(File::options().write(true).open("/dev/full").unwrap())
        .run();
    assert_eq!(exited.code, Some(1), "{exited:?}");
    let events = exited.events();
    let audit = events.iter().filter(|event| event["target"] == "audit");
    let changes: Vec<_> = audit.map(|event| &event["message"]).collect();
    assert_eq!(changes, ["API key created", "API key revoked"]);

    assert_eq!(list_in(folder.path()), "[]");
    // A first key is only added to a file that never had one.
    program().start().wait_for_text(CREATE_KEY);
}

#[test]
fn an_invalid_key_does_not_prevent_the_start() {
    let folder = TempDir::new().unwrap();
    let keys = |args: &[&str]| {
        Program::in_folder(folder.path())
            .args(&["keys"])
            .args(args)
            .run()
    };
    let (token, _) = token_and_id(&keys(&["create", "--create", "--label", "good"]));
    let (_, id) = token_and_id(&keys(&["create", "--label", "bad"]));
    let path = folder.path().join("animal-store.db");
    let mut file = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
    file.batch_execute(&format!("UPDATE api_keys SET label = '' WHERE id = '{id}'"))
        .unwrap();

    let mut running = Program::in_folder(folder.path()).start();
    let event = running.wait_for_event("an API key is not valid: this command revokes it");
    assert!(
        event["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains(&id)),
        "{event}"
    );
    assert_eq!(status(running.address(), &token), 200);
    paste(
        &event["command"]
            .as_str()
            .expect("a command")
            .replace(" ID", &format!(" {id}")),
        folder.path(),
    );
    assert!(!list_in(folder.path()).contains(&id));
}
